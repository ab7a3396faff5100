package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// repeats say an element several times.
func repeats() []op.Op {
	return []op.Op{
		{Type: "Expand", Since: 8, Shape: expandShape, Run: runExpand},
		{Type: "Tile", Since: 6, Shape: tileShape, Run: runTile},
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
	return one(a.DType, shape...)
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
		return nil, fmt.Errorf("%s %v: a size is negative", name, sizes)
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

func tileShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, err
	}
	times, err := nonNegative(in, 1, "repeats")
	if err != nil {
		return nil, err
	}
	if len(times) != len(a.Shape) {
		return nil, fmt.Errorf("repeats %v for a tensor of rank %d", times, len(a.Shape))
	}
	shape := make([]int64, len(times))
	for i, n := range times {
		// The product of two of them cannot overflow unnoticed: both are sizes of a tensor.
		if err := (ir.Spec{Shape: []int64{n, a.Shape[i]}}).Valid(); err != nil {
			return nil, fmt.Errorf("repeats %v: %w", times, err)
		}
		shape[i] = n * a.Shape[i]
	}
	return one(a.DType, shape...)
}

// runTile sees each axis as two: one that repeats, and inside it the axis itself.
func runTile(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	from, to := op.Strides(src.Shape), op.Strides(dst.Shape)
	s := &strided{}
	for i, n := range src.Shape {
		if n == 0 {
			return nil
		}
		s.add(dst.Shape[i]/n, n*to[i], 0)
		s.add(n, to[i], from[i])
	}
	move(c.Pool, s, dst, src)
	return nil
}
