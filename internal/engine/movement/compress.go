package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func compresses() []op.Op {
	return []op.Op{
		{Type: "Compress", Since: 9, Shape: compressShape, Run: runCompress, Work: wordEach(1)},
	}
}

// compressed is the input and the size of its parts: one index of the axis, or one element.
func compressed(n *op.Node, in []*ir.Array) (a *ir.Array, axis int, condition []bool, err error) {
	if a, err = op.Arg(in, 0, "input"); err != nil {
		return nil, 0, nil, err
	}
	chosen, err := op.Arg(in, 1, "condition")
	if err != nil {
		return nil, 0, nil, err
	}
	size := a.Elems()
	if n.Has("axis") {
		if axis, err = op.Axis(n.Int("axis", 0), len(a.Shape)); err != nil {
			return nil, 0, nil, err
		}
		size = a.Shape[axis]
	}
	if chosen.DType != ir.Bool || len(chosen.Shape) != 1 || chosen.Elems() > size {
		return nil, 0, nil, fmt.Errorf("condition is %s, want a list of up to %d bools", chosen, size)
	}
	if !op.IsKnown(chosen) {
		return nil, 0, nil, op.ErrUnknown
	}
	return a, axis, ir.View[bool](chosen), nil
}

func compressShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, axis, condition, err := compressed(n, in)
	if err != nil {
		return nil, err
	}
	taken := int64(0)
	for _, yes := range condition {
		if yes {
			taken++
		}
	}
	if !n.Has("axis") {
		return op.One(a.DType, taken)
	}
	shape := slices.Clone(a.Shape)
	shape[axis] = taken
	return op.One(a.DType, shape...)
}

func runCompress(c *op.Call) error {
	a, axis, condition, err := compressed(c.Node, c.In)
	if err != nil {
		return err
	}
	r := &runs{size: 1, outer: 1}
	if c.Has("axis") {
		r.size, r.outer = int(op.Product(a.Shape[axis+1:])), int(op.Product(a.Shape[:axis]))
		r.srcStep = int(a.Shape[axis]) * r.size
	}
	places := words(c)
	for i, yes := range condition {
		if yes {
			places[r.n] = int64(i * r.size)
			r.n++
		}
	}
	r.src, r.dstStep = places[:r.n], r.n*r.size
	move(c.Pool, r, c.Out[0], a)
	return nil
}
