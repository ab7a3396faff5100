package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/inspect"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
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
			f, err := remote.OpenModel(c.Context, args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if text {
				return t.text(c.Context, f)
			}
			return t.inspect(c.Context, f, inspect.Options{Workers: t.workers, Values: values}, by.Value)
		},
	}
}

func (t *tool) inspect(ctx context.Context, f *onnx.File, o inspect.Options, by string) error {
	facts, err := inspect.Model(ctx, f, o)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if by == "module" && !t.json {
		return mcli.ModuleTree(t.stdout, t.style(), f.Path, facts)
	}
	if !t.json {
		return mcli.Inspection(t.stdout, t.style(), f.Path, facts)
	}
	return t.encode(facts)
}

func (t *tool) text(ctx context.Context, f *onnx.File) error {
	eval := ir.NewEval("")
	defer eval.Close()
	return f.Model.Text(ctx, eval, t.stdout)
}
