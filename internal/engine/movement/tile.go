package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func tiles() []op.Op {
	return []op.Op{
		{Type: "Tile", Since: 6, Shape: tileShape, Run: runTile},
	}
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
	return op.One(a.DType, shape...)
}

// runTile treats each axis as two: the repetitions, and inside them the axis itself.
func runTile(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	from, to := op.Strides(src.Shape), op.Strides(dst.Shape)
	s := &stridedTransfer{}
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
