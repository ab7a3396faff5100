package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/onnx"
)

// A packing has the flags of both pack and unpack.
type packing struct {
	output, base string
	noSync       bool
}

// flags are those flags; usage is that of --output, and base that of --base.
func (p *packing) flags(output func(*flag.FlagSet), base string) []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		output(fs)
		fs.StringVar(&p.base, "base", "", base)
		fs.BoolVar(&p.noSync, "no-sync", false, "skip fsync")
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

// openBase calls f with the files of the base, none without --base.
func (p *packing) openBase(ctx context.Context, f func([]pack.File) error) (err error) {
	if p.base == "" {
		return f(nil)
	}
	base, err := onnx.OpenContext(ctx, p.base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	return f(job.FilesToPack(base))
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
			return p.openBase(c.Context, func(base []pack.File) error { return t.pack(c.Context, model, p.output, base, !p.noSync) })
		},
	}
}

// pack packs the model at path as differences from base, and prints the sizes unless the result is on standard output.
func (t *tool) pack(ctx context.Context, path, output string, base []pack.File, sync bool) (err error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o, stop := t.packOptions(path)
	defer stop()
	o.Base = base
	files := job.FilesToPack(f)
	if output == "-" {
		_, err := pack.Write(ctx, t.stdout.Unwrap(), files, o)
		return err
	}
	set := &atomicfile.Set{Sync: sync}
	defer func() { err = errors.Join(err, set.Close()) }()
	if set.Access, err = atomicfile.Like(f.Paths()...); err != nil {
		return err
	}
	p := &mcli.Packing{Model: path, Output: output, Bytes: f.Size()}
	err = set.WriteFile(output, func(w io.Writer) error {
		index, err := pack.Write(ctx, w, files, o)
		if err == nil {
			p.Count(index)
		}
		return err
	})
	if err == nil {
		err = set.Publish(output)
	}
	if err != nil {
		return err
	}
	written, err := os.Stat(output)
	if err != nil {
		return err
	}
	p.Packed = written.Size()
	if t.json {
		return t.encode(p)
	}
	return p.Text(t.stdout, t.style())
}

// packOptions are the options of packing and unpacking with a progress bar, which stop removes.
func (t *tool) packOptions(name string) (o pack.Options, stop func()) {
	o = pack.Options{Workers: t.workers, Memory: int64(t.memory)}
	p := t.newProgress(name)
	if p != nil {
		o.Progress = p.show
	}
	return o, p.stop
}
