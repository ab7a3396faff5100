package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func expands() []op.Op {
	return []op.Op{
		{Type: "Expand", Since: 8, Shape: expandShape, Run: runExpand},
	}
}

func expandShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	shape, err := nonNegative(in, 1, "shape")
	if err != nil {
		return nil, err
	}
	if shape, err = op.BroadcastShapes(a.Shape, shape); err != nil {
		return nil, err
	}
	return op.One(a.DType, shape...)
}

// nonNegative is input i as a list of sizes.
func nonNegative(in []*ir.Array, i int, name string) ([]int64, error) {
	a, err := op.Arg(in, i, name)
	if err != nil {
		return nil, err
	}
	sizes, err := op.Ints(a)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(sizes, func(n int64) bool { return n < 0 }) {
		return nil, fmt.Errorf("%s %v: negative size", name, sizes)
	}
	return sizes, nil
}

func runExpand(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	ahead := len(dst.Shape) - len(src.Shape)
	from := make([]int64, len(dst.Shape))
	for i, stride := range op.Strides(src.Shape) {
		if src.Shape[i] != 1 {
			from[ahead+i] = stride
		}
	}
	move(c.Pool, newStrided(dst.Shape, op.Strides(dst.Shape), from), dst, src)
	return nil
}
