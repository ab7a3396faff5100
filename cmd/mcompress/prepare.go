package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// preparing is the flags that put steps in front of a method that quantizes.
type preparing struct {
	equalize bool
	smooth   string
}

func (p *preparing) flags() []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		fs.BoolVar(&p.equalize, "equalize", false, "fold BatchNormalization and equalize weight ranges across layers first: for --per-tensor")
		fs.StringVar(&p.smooth, "smooth", "", "SmoothQuant first, with the samples of --data: the migration strength alpha, a `fraction` from 0 to 1, or auto")
	})
}

// A preparation is a step in front of a method, and an option of its own.
type preparation struct {
	method        *pass.Method
	option, value string
}

// steps are those in front of the method called name, with what was given that they have, too.
func (p *preparing) steps(name string, o *mcli.MethodOptions) ([]pass.Options, error) {
	var wanted []preparation
	if p.equalize {
		wanted = append(wanted, preparation{method: quantize.FoldBatchNorm{}.Method()}, preparation{method: quantize.Equalize{}.Method()})
	}
	if p.smooth != "" && name != (quantize.DynamicInt8{}).Method().Name && name != (quantize.StaticInt8{}).Method().Name {
		return nil, usagef("--smooth requires a method with 8-bit activations, not %s", name)
	}
	if p.smooth != "" {
		wanted = append(wanted, preparation{quantize.Smooth{}.Method(), "alpha", p.smooth})
	}
	var steps []pass.Options
	for _, w := range wanted {
		step, err := pass.NewStep(w.method, func(fs *flag.FlagSet) error { return w.set(fs, name, o) })
		if err != nil {
			return nil, &usageError{err}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// set gives a step its options. What static-int8 would round in front of a product as well as
// behind it helps nothing: no Mul is inserted for it.
func (w preparation) set(fs *flag.FlagSet, name string, given *mcli.MethodOptions) error {
	if err := given.Fill(fs); err != nil {
		return err
	}
	if w.option == "" {
		return nil
	}
	if name == (quantize.StaticInt8{}).Method().Name {
		if err := fs.Set("insert-mul", "false"); err != nil {
			return err
		}
	}
	return fs.Set(w.option, w.value)
}
