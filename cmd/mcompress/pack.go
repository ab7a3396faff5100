package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// A packing has the flags of both pack and unpack.
type packing struct {
	mcompress.PackOptions
	output string
}

// flags are those flags; usage is that of --output, and base that of --base.
func (p *packing) flags(output func(*flag.FlagSet), base string) []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		output(fs)
		fs.StringVar(&p.Base, "base", "", base)
		fs.BoolVar(&p.NoSync, "no-sync", false, "skip fsync")
	})
}

// arguments returns the argument of the command, and requires --output.
func (p *packing) arguments(c *cli.Context) (string, error) {
	args, err := arguments(c, 1, 1)
	switch {
	case err != nil:
		return "", err
	case p.output == "":
		return "", usagef("--output is required")
	}
	return args[0], nil
}

// options are those of the flags.
func (p *packing) options(t *tool, command string) mcompress.PackOptions {
	o := p.PackOptions
	o.Limits, o.Events = t.requestLimits(), t.events(command)
	return o
}

func packCommand(t *tool) *cli.Command {
	var p packing
	return &cli.Command{
		Name:      "pack",
		Usage:     "pack a model without loss for storage and transfer (.mcz)",
		ArgsUsage: "MODEL",
		Description: `Codes every tensor with the codec that makes it smallest: exponents of floats apart from mantissas, quantized values by their
entropy, sorted positions by their differences; identical tensors are stored once. External data is part of the packed file.
unpack restores the files bit for bit. With --base, tensors are stored as differences from those of another model, which unpack
requires, too. The format is documented in docs/formats/mcz.md.

Examples: mcompress pack -o model.mcz model.onnx
          mcompress pack --base v1.onnx -o v2.mcz v2.onnx
          mcompress pack -o - model.onnx | ssh HOST mcompress unpack -o model.onnx -`,
		Flags: p.flags(func(fs *flag.FlagSet) {
			fs.StringVar(&p.output, "output", "", "`file` for the packed model, or - for standard output")
		}, "`model` to store differences from, such as an earlier version"),
		Action: func(c *cli.Context) error {
			model, err := p.arguments(c)
			switch {
			case err != nil:
				return err
			case p.output == "-" && isTerminal(t.stdout):
				return usagef("a packed model is not written to a terminal")
			}
			// Bytes, in which nothing is escaped for terminals.
			if p.output == "-" {
				return mcompress.PackTo(c.Context, model, t.stdout.Unwrap(), p.options(t, c.Command.Name))
			}
			packed, err := mcompress.Pack(c.Context, model, p.output, p.options(t, c.Command.Name))
			if err != nil {
				return err
			}
			if t.json {
				return t.encode(packed)
			}
			return mcli.Packed(t.stdout, t.style(), packed)
		},
	}
}
