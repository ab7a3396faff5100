package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// preparing has the flags that add steps before a quantization method.
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

// A precedingStep is a step before a method, with one option.
type precedingStep struct {
	method        *pass.Method
	option, value string
}

// steps returns the steps before the method called name, with the given options that they have.
func (p *preparing) steps(name string, o *mcli.MethodOptions) ([]pass.Options, error) {
	var list []precedingStep
	if p.equalize {
		list = append(list, precedingStep{method: quantize.FoldBatchNorm{}.Method()}, precedingStep{method: quantize.Equalize{}.Method()})
	}
	if p.smooth != "" && name != (quantize.DynamicInt8{}).Method().Name && name != (quantize.StaticInt8{}).Method().Name {
		return nil, usagef("--smooth requires a method with 8-bit activations, not %s", name)
	}
	if p.smooth != "" {
		list = append(list, precedingStep{quantize.Smooth{}.Method(), "alpha", p.smooth})
	}
	var steps []pass.Options
	for _, w := range list {
		step, err := pass.NewStep(w.method, func(fs *flag.FlagSet) error { return w.set(fs, name, o) })
		if err != nil {
			return nil, &usageError{err}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// set sets the options of a step. No Mul is inserted for static-int8, which would quantize the activation both before and
// after it.
func (w precedingStep) set(fs *flag.FlagSet, name string, given *mcli.MethodOptions) error {
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
