package rescale

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Vector reports whether input i of n is a constant of one value per channel
// along the last axis, which ScaleVector can multiply.
func (e *Editor) Vector(n *ir.Node, i int, channels int64) bool {
	v := n.Input(i)
	if v == nil || !e.fits(v, channels, Place{Rank: 1 << 10}) {
		return false
	}
	o := pass.Trace(v)
	return (ir.Spec{Shape: o.Shape}).Elems() == channels && isScalable(o.Elem) && o.Elem == o.Base.Const.DType &&
		!o.Base.Ambiguous
}

// ownConstant is the constant that v, which may be nil, is or is a view of, if nothing else reads it and its elements
// are those of v in their order; nil if there is none.
func ownConstant(v *ir.Value) *ir.Value {
	o := pass.Trace(v)
	if o == nil || !o.Trouble.None() || o.Transposed || o.Base.Ambiguous || o.Elem != o.Base.Const.DType {
		return nil
	}
	for ; len(v.Uses()) == 1; v = v.Producer().Input(0) {
		if v == o.Base {
			return v
		}
	}
	return nil
}

// ScaleVector multiplies the constant that is input i of n by f. Other consumers of the
// constant keep the original.
func (e *Editor) ScaleVector(ctx context.Context, n *ir.Node, i int, f []float64) error {
	v := n.Input(i)
	if base := ownConstant(v); base != nil {
		e.scale(base, axis{n: int64(len(f)), inner: 1}, f)
		return nil
	}
	// Another node reads the constant, too: a copy is scaled.
	x, err := e.numbers(ctx, v)
	if err != nil {
		return err
	}
	for k := range x {
		x[k] *= f[k]
	}
	o := pass.Trace(v)
	n.SetInput(i, n.Graph().AddConst("c", vector(o.Elem, o.Shape, x)))
	v.Drop()
	return nil
}
