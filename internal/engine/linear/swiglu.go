package linear

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// swiGLUs: Y = A·sigmoid(alpha·A)·B (Shazeer, "GLU Variants Improve Transformer", 2020), with the limit of Swish at
// infinite A.
func swiGLUs() []op.Op {
	return []op.Op{{Type: "SwiGLU", Since: 28, Shape: swiGLUShape, Run: runSwiGLU, InPlace: []int{0, 1}}}
}

func swiGLUShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "A")
	if err != nil {
		return nil, err
	}
	b, err := op.Arg(in, 1, "B")
	if err != nil {
		return nil, err
	}
	if a.String() != b.String() {
		return nil, fmt.Errorf("inputs A %s and B %s have different types or shapes", a, b)
	}
	if a.DType != ir.Float && a.DType != ir.Double && !half(a.DType) {
		return nil, fmt.Errorf("input A is %s, want a float type", a)
	}
	return []ir.Spec{a.Spec()}, nil
}

func runSwiGLU(c *op.Call) error {
	alpha, n := c.Float("alpha", 1), int(c.Out[0].Elems())
	c.Pool.Rows(n, 1<<13, func(from, to int) {
		switch c.Out[0].DType {
		case ir.Double:
			swish64(c, from, to, float64(alpha))
		case ir.Float:
			y, a, b := ir.View[float32](c.Out[0])[from:to], ir.View[float32](c.In[0])[from:to],
				ir.View[float32](c.In[1])[from:to]
			for at := range blocksOf(len(y)) {
				end := min(at+swishBlock, len(y))
				swish(y[at:end], a[at:end], b[at:end], alpha)
			}
		default:
			swishHalf(c, from, to, alpha)
		}
	})
	return nil
}

// swishBlock is the number of elements computed at once.
const swishBlock = 256

func blocksOf(n int) func(yield func(at int) bool) {
	return func(yield func(int) bool) {
		for at := 0; at < n && yield(at); at += swishBlock {
		}
	}
}

// swish computes a block. y may be a or b.
func swish(y, a, b []float32, alpha float32) {
	// Not in y, which may be b.
	var gated, scratch [swishBlock]float32
	n := len(y)
	kernel.Swish(gated[:n], a, scratch[:n], alpha)
	kernel.Mul(y, gated[:n], b)
}

func swishHalf(c *op.Call, from, to int, alpha float32) {
	var wide [2][swishBlock]float32
	for at := range blocksOf(to - from) {
		i := from + at
		n := min(swishBlock, to-i)
		a, b := wide[0][:n], wide[1][:n]
		widen(a, slice(c.In[0], i, n))
		widen(b, slice(c.In[1], i, n))
		swish(a, a, b, alpha)
		narrow(slice(c.Out[0], i, n), a)
	}
}

// slice is n 16-bit elements of a.
func slice(a *ir.Array, from, n int) *ir.Array {
	return &ir.Array{DType: a.DType, Shape: []int64{int64(n)}, Data: a.Data[2*from : 2*(from+n)]}
}

func swish64(c *op.Call, from, to int, alpha float64) {
	y, a, b := ir.View[float64](c.Out[0]), ir.View[float64](c.In[0]), ir.View[float64](c.In[1])
	for i := from; i < to; i++ {
		gate := 1 + math.Exp(-alpha*a[i])
		// The limit of infinite a, as in kernel.Swish.
		if math.IsInf(gate, 1) {
			y[i] = math.Copysign(0, a[i]) * b[i]
		} else {
			y[i] = a[i] / gate * b[i]
		}
	}
}
