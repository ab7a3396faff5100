package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// choices take what a second input chooses.
func choices() []op.Op {
	return []op.Op{
		{Type: "Compress", Since: 9, Shape: compressShape, Run: runCompress, Work: wordEach(1)},
		{Type: "ReverseSequence", Since: 10, Shape: reverseShape, Run: runReverse},
	}
}

// compressed is the input and the size of its parts: a part is one step along the axis, or one element.
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
		return nil, 0, nil, fmt.Errorf("condition is %s, not a list of up to %d bools", chosen, size)
	}
	if !op.Known(chosen) {
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
		return one(a.DType, taken)
	}
	shape := slices.Clone(a.Shape)
	shape[axis] = taken
	return one(a.DType, shape...)
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

// timed is ReverseSequence's input, its lengths, and its axes of batch and time: 0 and 1 in either order.
func timed(n *op.Node, in []*ir.Array) (a, lens *ir.Array, batch, time int64, err error) {
	if a, err = op.Arg(in, 0, "input"); err != nil {
		return nil, nil, 0, 0, err
	}
	if lens, err = op.Arg(in, 1, "sequence_lens"); err != nil {
		return nil, nil, 0, 0, err
	}
	batch, time = n.Int("batch_axis", 1), n.Int("time_axis", 0)
	if len(a.Shape) < 2 || batch < 0 || time < 0 || batch+time != 1 {
		return nil, nil, 0, 0, fmt.Errorf("batch_axis %d and time_axis %d for input %s: they must be 0 and 1", batch, time, a)
	}
	if lens.DType != ir.Int64 || !slices.Equal(lens.Shape, a.Shape[batch:batch+1]) {
		return nil, nil, 0, 0, fmt.Errorf("sequence_lens are %s, not one int64 for each of %d sequences", lens, a.Shape[batch])
	}
	return a, lens, batch, time, nil
}

func reverseShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, _, _, _, err := timed(n, in)
	if err != nil {
		return nil, err
	}
	return one(a.DType, a.Shape...)
}

func runReverse(c *op.Call) error {
	a, lens, batch, time, err := timed(c.Node, c.In)
	if err != nil {
		return err
	}
	strides, steps, inner := op.Strides(a.Shape), a.Shape[time], op.Product(a.Shape[2:])
	for i, n := range ir.View[int64](lens) {
		if n < 0 || n > steps {
			return fmt.Errorf("sequence %d is said to be %d of %d steps long", i, n, steps)
		}
		at := int(int64(i) * strides[batch])
		turned := &strided{dst: at, src: at + int((n-1)*strides[time])}
		turned.add(n, strides[time], -strides[time])
		turned.add(inner, 1, 1)
		rest := &strided{dst: at + int(n*strides[time])}
		rest.src = rest.dst
		rest.add(steps-n, strides[time], strides[time])
		rest.add(inner, 1, 1)
		for _, s := range []*strided{turned, rest} {
			if !s.empty() {
				move(c.Pool, s, c.Out[0], a)
			}
		}
	}
	return nil
}
