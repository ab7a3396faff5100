package pass

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// A Bound is what the stored form of a weight must hold. Every run evaluates it on the parts as they are in the written
// files, decoded as a reader does: a weight that breaks it was encoded, packed or written wrongly, which is a bug of
// the program.
//
// It must hold for every weight that a method accepts. What it compares is derived from the rounding of the encoding
// (docs/bounds.md), never from what weights usually look like.
type Bound struct {
	// Of is the weight that was encoded: that before the step, or what the step made of it, such as a rescaled one.
	Of *ir.Tensor
	// Tensors makes tensors of the elements of Of from the parts in the order of Row.After: the restored weight, and
	// those that New compares with.
	Tensors func(parts []*ir.Tensor) []*ir.Tensor
	// New returns a function that is called with consecutive elements: x of Of, and y of each of the Tensors, as
	// float32. After the last ones it is called once more without any. It returns what is wrong; empty if nothing is.
	// The reader has the elements of Of. Note adds a note to the row.
	New func(ctx context.Context, of io.ReaderAt, note func(Reason)) (func(x []float32, y [][]float32) string, error)
}

// ExactBound is that of forms that keep every element in value: zeros may have another sign.
func ExactBound(of *ir.Tensor, restore func(parts []*ir.Tensor) *ir.Tensor) *Bound {
	return &Bound{
		Of:      of,
		Tensors: func(parts []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{restore(parts)} },
		New:     EachElement(func(x, y float32) bool { return x == y || x != x && y != y }), // NaN equals NaN
	}
}

// Itself restores a weight that is stored as it is.
func Itself(parts []*ir.Tensor) *ir.Tensor { return parts[0] }

// EachElement is New of a bound of each element x alone, whose restored one is y.
func EachElement(holds func(x,
	y float32) bool) func(context.Context, io.ReaderAt, func(Reason)) (func(x []float32, y [][]float32) string, error) {
	return func(context.Context, io.ReaderAt, func(Reason)) (func(x []float32, y [][]float32) string, error) {
		at := 0
		return func(x []float32, y [][]float32) string {
			for i, v := range x {
				if !holds(v, y[0][i]) {
					return fmt.Sprintf("element %d is %g, and stored as %g", at+i, v, y[0][i])
				}
			}
			// Elements come in pieces; errors count from the first one of the weight.
			at += len(x)
			return ""
		}, nil
	}
}
