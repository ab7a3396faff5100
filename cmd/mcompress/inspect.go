package main

import (
	"context"
	"flag"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

func inspectCommand(t *tool) *cli.Command {
	var values, text bool
	by := mcli.Enum{Value: "tensor", Words: []string{"tensor", "module"}}
	return &cli.Command{
		Name:      "inspect",
		Usage:     "list operators, data types and tensors of a model, with their consumers",
		ArgsUsage: "MODEL",
		Flags: group("flags", func(fs *flag.FlagSet) {
			fs.BoolVar(&values, "values", false, "read all tensors and count zeros")
			fs.Var(&by, "by", "`grouping` of the constants: tensor, or module, the tree of the modules that the exporter recorded")
			fs.BoolVar(&text, "text", false, "print the model in ONNX's text syntax instead")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if text && by.Value == "module" {
				return usagef("--text and --by exclude each other")
			}
			if text && (values || t.json) {
				return usagef("--text excludes --values and --json")
			}
			m, err := mcompress.OpenContext(c.Context, args[0])
			if err != nil {
				return err
			}
			defer m.Close()
			if text {
				return m.Text(c.Context, t.stdout)
			}
			return t.inspect(c.Context, m, mcompress.InspectOptions{Values: values, Limits: t.requestLimits()}, by.Value)
		},
	}
}

func (t *tool) inspect(ctx context.Context, m *mcompress.Model, o mcompress.InspectOptions, by string) error {
	facts, err := m.Inspect(ctx, o)
	switch {
	case err != nil:
		return err
	case t.json:
		return t.encode(facts)
	case by == "module":
		return mcli.ModuleTree(t.stdout, t.style(), m.Path(), facts)
	}
	return mcli.Inspection(t.stdout, t.style(), m.Path(), facts)
}
