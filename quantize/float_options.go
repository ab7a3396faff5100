package quantize

import (
	"errors"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A narrowType is a float of 16 bits: its range, and how a model holds it.
type HalfType struct {
	DType               ir.DType
	opset, computeOpset int64     // the first ones that can store it and compute in it
	stored              pass.Form // behind a Cast
	computed, lookup    pass.Form // as it is, and as a table
	largest             float32
	overflow            uint32 // bits of the smallest float32 that rounds to infinity
	minNormal           uint32 // bits of the smallest normal number
	write               func(dst []uint16, x []float32)
	note                string // of a model that computes in it
}

// A narrowing is one run of float16 or bfloat16.
type Converter struct {
	*HalfType
	Compute     bool       // the graph computes in the narrow type too
	KeepIO      bool       // callers see float32
	KeepFloat32 pass.Globs // nodes that stay float32
	Clamp       bool       // weights beyond the range become the largest number
	Data        *calibrate.Data
}

func (w *Converter) Run(c *pass.Context) error {
	need := w.opset
	if w.Compute {
		need = w.computeOpset
	}
	if err := raiseIfBelow(c, need, w.opset); err != nil {
		return err
	}
	if w.Compute {
		return w.convert(c)
	}
	return w.store(c, c.Weights())
}

// raiseIfBelow raises the opset to what is wanted, or at least what is needed, where that can be. Weights of models that
// stay below are left alone, one by one.
func raiseIfBelow(c *pass.Context, want, need int64) error {
	var no *opset.Unsupported
	for _, to := range []int64{want, need} {
		if !OpsetBelow(c.Model, to) {
			continue
		}
		err := RaiseOpset(c, to)
		if err == nil {
			return nil
		}
		if !errors.As(err, &no) {
			return err
		}
	}
	return nil
}
