package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// unpools is MaxUnpool.
func unpools() []op.Op {
	return wide(op.Op{Type: "MaxUnpool", Since: 9, Shape: unpoolShape, Run: unpoolTypes().run})
}

func unpoolTypes() byType {
	return byType{ir.Float: unpool[float32], ir.Double: unpool[float64]}
}

func unpoolShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := unpoolTypes().image(in)
	if err != nil {
		return nil, err
	}
	places, err := op.Arg(in, 1, "I")
	if err != nil {
		return nil, err
	}
	if places.DType != ir.Int64 || places.Elems() != x.Elems() {
		return nil, fmt.Errorf("input I is %s, want int64 with as many elements as X, %s", places, x)
	}
	small, err := unpooled(n, x)
	if err != nil || op.Opt(in, 2) == nil {
		return small, err
	}
	given, err := op.Ints(in[2])
	if err != nil {
		return nil, err
	}
	return largerShape(x, small[0].Shape, given)
}

// unpooled is the minimum shape that MaxPool would have computed x from.
func unpooled(n *op.Node, x *ir.Array) ([]ir.Spec, error) {
	rank := len(x.Shape) - 2
	kernel, err := kernelShape(n, rank, nil)
	if err != nil {
		return nil, err
	}
	stride, err := sizes("strides", n.Ints("strides"), rank, 1, 1)
	if err != nil {
		return nil, err
	}
	pads, err := sizes("pads", n.Ints("pads"), 2*rank, 0, 0)
	if err != nil {
		return nil, err
	}
	out := make([]int, rank)
	for i := range out {
		if x.Shape[i+2] > most {
			return nil, fmt.Errorf("axis %d of X has size %d, maximum is %d", i+2, x.Shape[i+2], most)
		}
		out[i] = (int(x.Shape[i+2])-1)*stride[i] - pads[i] - pads[rank+i] + kernel[i]
	}
	return like(x, spatial(x, out)...)
}

// largerShape is the shape given by output_shape, which must contain the minimum one.
func largerShape(x *ir.Array, small, given []int64) ([]ir.Spec, error) {
	if len(given) != len(small) {
		return nil, fmt.Errorf("output_shape %v has %d entries, want %d", given, len(given), len(small))
	}
	for i, d := range given {
		if d < small[i] {
			return nil, fmt.Errorf("output_shape %v is smaller than %v along axis %d", given, small, i)
		}
	}
	return like(x, given...)
}

// unpool copies each element to its index. Indices refer to the minimum shape; in a larger one the coordinates are
// kept, as in the reference implementation.
func unpool[T float](c *op.Call) error {
	x, y, places := ir.View[T](c.In[0]), ir.View[T](c.Out[0]), ir.View[int64](c.In[1])
	specs, err := unpooled(c.Node, c.In[0])
	if err != nil {
		return err
	}
	small, n := specs[0].Shape, specs[0].Elems()
	strides := op.Strides(c.Out[0].Shape)
	clear(y)
	for i, p := range places {
		if p < 0 || p >= n {
			return fmt.Errorf("input I has index %d at %d, out of range for %v", p, i, small)
		}
		at := int64(0)
		for a := len(small) - 1; a >= 0; a-- {
			at += p % small[a] * strides[a]
			p /= small[a]
		}
		y[at] = x[i]
	}
	return nil
}
