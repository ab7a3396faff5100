package quantize

import (
	"errors"
	"flag"
	"fmt"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A narrowType is a float of 16 bits: its range, and how a model holds it.
type narrowType struct {
	dt               ir.DType
	opset, computing int64     // the first ones that can store it and compute in it
	stored           pass.Form // behind a Cast
	computed, looked pass.Form // as it is, and as a table
	largest          float32
	overflow         uint32 // bits of the smallest float32 that rounds to infinity
	normal           uint32 // bits of the smallest normal number
	write            func(dst []uint16, x []float32)
	note             string // of a model that computes in it
}

// A narrowing is one run of float16 or bfloat16.
type narrowing struct {
	*narrowType
	compute bool       // the graph computes in the narrow type too
	keepIO  bool       // callers see float32
	wide    pass.Globs // nodes that stay float32
	clamp   bool       // weights beyond the range become the largest number
	data    *calibrate.Data
}

func bindNarrow(fs *flag.FlagSet, t *narrowType) func(*pass.Context) error {
	w := &narrowing{narrowType: t, keepIO: true}
	fs.Var(&arithmetic{&w.compute, t.dt}, "compute", "`type` of the arithmetic: float32, or the method's own, which makes the values between nodes narrow too")
	fs.BoolVar(&w.keepIO, "keep-io", true, "with --compute: inputs and outputs of the model stay float32, as callers expect")
	fs.Var(&w.wide, "keep-float32", "with --compute: nodes that stay float32, by `globs` over their names (op:Softmax for operators)")
	fs.BoolVar(&w.clamp, "clamp", false, "weights beyond the type's range become its largest number; they stay float32 otherwise")
	if t.overflow < brain16.overflow {
		w.data = &calibrate.Data{Lenient: true}
		w.data.Bind(fs, 32)
	}
	return w.run
}

// arithmetic is the value of --compute.
type arithmetic struct {
	narrow *bool
	dt     ir.DType
}

func (a *arithmetic) String() string {
	if a.narrow != nil && *a.narrow {
		return a.dt.String()
	}
	return "float32"
}

func (a *arithmetic) Set(v string) error {
	switch v {
	case "float32", a.dt.String():
		*a.narrow = v != "float32"
		return nil
	}
	return fmt.Errorf("%q is neither float32 nor %s", v, a.dt)
}

func (w *narrowing) run(c *pass.Context) error {
	need := w.opset
	if w.compute {
		need = w.computing
	}
	if err := raiseIfBelow(c, need, w.opset); err != nil {
		return err
	}
	if w.compute {
		return w.convert(c)
	}
	return w.store(c, c.Weights())
}

// raiseIfBelow raises the opset to what is wanted, or at least what is needed, where that can be. Weights of models that
// stay below are left alone, one by one.
func raiseIfBelow(c *pass.Context, want, need int64) error {
	var no *opset.Unsupported
	for _, to := range []int64{want, need} {
		if !below(c.Model, to) {
			continue
		}
		err := raise(c, to)
		if err == nil {
			return nil
		}
		if !errors.As(err, &no) {
			return err
		}
	}
	return nil
}
