package movement

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// shapeOps depend on the shape of their input and not on its elements.
func shapeOps() []op.Op {
	return []op.Op{
		{Type: "Shape", Since: 1, OfShape: true, Shape: shapeShape, Run: runShape},
		{Type: "Size", Since: 1, OfShape: true, Shape: sizeShape, Run: runSize},
	}
}

func shapeShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Arg(in, 0, "data")
	if err != nil {
		return nil, err
	}
	return op.One(ir.Int64, int64(len(partOfShape(n, a.Shape))))
}

func runShape(c *op.Call) error {
	copy(ir.View[int64](c.Out[0]), partOfShape(c.Node, c.In[0].Shape))
	return nil
}

// partOfShape is the part of the shape selected by start and end, which are clamped to the axes.
func partOfShape(n *op.Node, shape []int64) []int64 {
	rank := int64(len(shape))
	limit := func(i int64) int64 {
		if i < 0 {
			i += rank
		}
		return min(max(i, 0), rank)
	}
	start, end := limit(n.Int("start", 0)), limit(n.Int("end", rank))
	return shape[start:max(start, end)]
}

func sizeShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if _, err := op.Arg(in, 0, "data"); err != nil {
		return nil, err
	}
	return op.One(ir.Int64)
}

func runSize(c *op.Call) error {
	ir.View[int64](c.Out[0])[0] = c.In[0].Elems()
	return nil
}
