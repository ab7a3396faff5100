package elementwise

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// clipOps: the bounds are attributes below opset 11, then inputs.
func clipOps() []op.Op {
	attrs := unary("", "Clip", 6, block.Floats, runClipAttrs)
	inputs := unary("", "Clip", 11, block.Numbers, runClip)
	inputs.Shape = clipShape
	return []op.Op{attrs, inputs}
}

func clipShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := block.Numbers.Tensor(in, 0, "input")
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"min", "max"} {
		if n.Has(name) {
			return nil, fmt.Errorf("attribute %s: it is an input since opset 11", name)
		}
		bound, err := block.OptLike(x, in, i+1, name)
		if err != nil {
			return nil, err
		}
		if bound != nil && bound.Elems() != 1 {
			return nil, fmt.Errorf("input %s is %s, want a scalar", name, bound)
		}
	}
	return []ir.Spec{x.Spec()}, nil
}

func runClipAttrs(c *op.Call) error {
	lo, hi := c.Float("min", -math.MaxFloat32), c.Float("max", math.MaxFloat32)
	if c.In[0].DType == ir.Double {
		return transform(c, c.In[0], block.Grain, clipping(float64(lo), float64(hi)))
	}
	return clipSingle(c, lo, hi)
}

func clipSingle(c *op.Call, lo, hi float32) error {
	return transform(c, c.In[0], block.Grain, func(dst, x []float32) { kernel.Clip(dst, x, lo, hi) })
}

// clipping bounds by lo, then by hi: if lo > hi the result is hi. NaN propagates.
func clipping[T number](lo, hi T) func(dst, x []T) {
	return mapped(func(v T) T { return min(max(v, lo), hi) })
}

// runClip: the default of a bound is the largest or smallest finite number, by the specification, so that Inf is
// bounded too.
func runClip(c *op.Call) error {
	switch dt := c.In[0].DType; {
	case dt == ir.Double:
		return clip[float64](c, -math.MaxFloat64, math.MaxFloat64)
	case block.Signed.Has(dt):
		least := int64(-1) << (dt.Bits() - 1)
		return clip(c, least, ^least)
	case block.Unsigned.Has(dt):
		return clip[uint64](c, 0, math.MaxUint64>>(64-dt.Bits()))
	default:
		most := largest(dt)
		lo, hi := bounds(c, -most, most)
		return clipSingle(c, lo, hi)
	}
}

// largest is the largest finite number of a type that is computed in float32.
func largest(dt ir.DType) float32 {
	switch dt {
	case ir.Float16:
		return 65504
	case ir.BFloat16:
		return 0xffp120
	}
	return math.MaxFloat32
}

func clip[T number](c *op.Call, least, most T) error {
	lo, hi := bounds(c, least, most)
	return transform(c, c.In[0], block.Grain, clipping(lo, hi))
}

func bounds[T number](c *op.Call, lo, hi T) (T, T) {
	if a := c.Opt(1); a != nil {
		lo = block.Read[T](a).One(0)
	}
	if a := c.Opt(2); a != nil {
		hi = block.Read[T](a).One(0)
	}
	return lo, hi
}
