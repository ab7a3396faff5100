package backward

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// masks are the gradient of piecewise linear activations from one bit per element, instead of the result:
//
//	M = ActivationMask(V, lo, hi)
//	dX = MaskedGrad(dY, M)
//
// Bit i of M, least significant bit first, is set if element i of V is between the optional bounds, which are excluded.
// dX is dY times attribute on where the bit is set, and dY times attribute off elsewhere; 0 for off = 0 even if dY is
// NaN. V, dY and dX may be Float16.
func masks() []op.Op {
	return []op.Op{
		{Type: "ActivationMask", Shape: maskShape, Run: runMask},
		{Type: "MaskedGrad", Shape: maskedShape, InPlace: []int{0}, Run: runMasked},
	}
}

// maskBytes is the size of a mask of n elements.
func maskBytes(n int64) int64 { return (n + 7) / 8 }

func maskShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	wide := widenHalf(in, 0)
	v, err := op.Arg(wide, 0, "V")
	if err != nil {
		return nil, err
	}
	if err := floating(v, 0); err != nil {
		return nil, err
	}
	for i := 1; i < 3; i++ {
		if b := op.Opt(in, i); b != nil {
			if err := isLike(v, b, i, 1); err != nil {
				return nil, err
			}
		}
	}
	return []ir.Spec{{DType: ir.Uint8, Shape: []int64{maskBytes(v.Elems())}}}, nil
}

func maskedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	dy, err := op.Arg(widenHalf(in, 0), 0, "dY")
	if err != nil {
		return nil, err
	}
	if err := floating(dy, 0); err != nil {
		return nil, err
	}
	m, err := op.Arg(in, 1, "M")
	if err != nil {
		return nil, err
	}
	if m.Kind != ir.Dense || m.DType != ir.Uint8 || m.Elems() != maskBytes(dy.Elems()) {
		return nil, fmt.Errorf("input M is %s, want %s of %d elements", m, ir.Uint8, maskBytes(dy.Elems()))
	}
	return half.Stored(n, []ir.Spec{dy.Spec()})
}

// inBytes calls f for ranges of n elements that are whole bytes of a mask, from index from to index to-1.
func inBytes(p *op.Pool, n int, f func(from, to int)) {
	p.Rows(int(maskBytes(int64(n))), grain/8, func(from, to int) { f(8*from, min(8*to, n)) })
}

// halfBlock is the number of Float16 elements that are in float32 at a time: whole bytes of a mask.
const halfBlock = 1 << 10

func runMask(c *op.Call) error {
	v, m := c.In[0], c.Out[0].Data
	switch v.DType {
	case ir.Double:
		lo, hi := bounds[float64](c)
		x := ir.View[float64](v)
		inBytes(c.Pool, len(x), func(from, to int) { between(m[from/8:], x[from:to], lo, hi) })
	case ir.Float16:
		lo, hi := bounds[float32](c)
		x := ir.View[uint16](v)
		inBytes(c.Pool, len(x), func(from, to int) {
			var buffer [halfBlock]float32
			for at := from; at < to; at += halfBlock {
				end := min(at+halfBlock, to)
				wide := buffer[:end-at]
				kernel.F32FromF16(wide, x[at:end])
				kernel.Between(m[at/8:][:maskBytes(int64(len(wide)))], wide, lo, hi)
			}
		})
	default:
		lo, hi := bounds[float32](c)
		x := ir.View[float32](v)
		inBytes(c.Pool, len(x), func(from, to int) { kernel.Between(m[from/8:(to+7)/8], x[from:to], lo, hi) })
	}
	return nil
}

// bounds returns inputs 1 and 2, NaN for those that are absent.
func bounds[T number](c *op.Call) (lo, hi T) {
	b := [2]T{T(math.NaN()), T(math.NaN())}
	for i := range b {
		if a := c.Opt(i + 1); a != nil {
			b[i] = ir.View[T](a)[0]
		}
	}
	return b[0], b[1]
}

// between is kernel.Between in float64.
func between(mask []byte, x []float64, lo, hi float64) {
	clear(mask[:maskBytes(int64(len(x)))])
	for i, v := range x {
		// Comparisons with NaN are false: an absent bound excludes nothing, and a NaN of V passes its gradient.
		if !(v <= lo) && !(v >= hi) {
			mask[i/8] |= 1 << (i % 8)
		}
	}
}

func runMasked(c *op.Call) error {
	m, n := c.In[1].Data, int(c.In[0].Elems())
	on, off := c.Float("on", 1), c.Float("off", 0)
	if c.In[0].DType == ir.Double {
		dy, dx := ir.View[float64](c.In[0]), ir.View[float64](c.Out[0])
		inBytes(c.Pool, n, func(from, to int) {
			scaleMasked(dx[from:to], dy[from:to], m[from/8:], float64(on),
				float64(off))
		})
		return nil
	}
	inBytes(c.Pool, n, func(from, to int) {
		var buffer [halfBlock]float32
		for at := from; at < to; at += halfBlock {
			end := min(at+halfBlock, to)
			dy, dx := floats(c.In[0], at, end, buffer[:]), floats(c.Out[0], at, end, nil)
			if dx == nil {
				dx = buffer[:end-at]
			}
			kernel.ScaleMasked(dx, dy, m[at/8:(end+7)/8], on, off)
			if c.Out[0].DType == ir.Float16 {
				half.Store(ir.View[uint16](c.Out[0])[at:end], dx, c.Bool("exceeds", false))
			}
		}
	})
	return nil
}

// floats returns elements of a, those of Float16 in buffer, nil without one.
func floats(a *ir.Array, from, to int, buffer []float32) []float32 {
	if a.DType == ir.Float {
		return ir.View[float32](a)[from:to]
	}
	if buffer == nil {
		return nil
	}
	kernel.F32FromF16(buffer[:to-from], ir.View[uint16](a)[from:to])
	return buffer[:to-from]
}

// scaleMasked is kernel.ScaleMasked in float64.
func scaleMasked(dst, x []float64, mask []byte, on, off float64) {
	for i, v := range x {
		switch {
		case mask[i/8]>>(i%8)&1 == 1:
			dst[i] = v * on
		case off != 0:
			dst[i] = v * off
		default:
			dst[i] = 0
		}
	}
}
