package movement

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func reverses() []op.Op {
	return []op.Op{
		{Type: "ReverseSequence", Since: 10, Shape: reverseShape, Run: runReverse},
	}
}

// timed is ReverseSequence's input, its lengths, and its batch and time axes: 0 and 1 in either order.
func timed(n *op.Node, in []*ir.Array) (a, lens *ir.Array, batch, time int64, err error) {
	if a, err = op.Arg(in, 0, "input"); err != nil {
		return nil, nil, 0, 0, err
	}
	if lens, err = op.Arg(in, 1, "sequence_lens"); err != nil {
		return nil, nil, 0, 0, err
	}
	batch, time = n.Int("batch_axis", 1), n.Int("time_axis", 0)
	if len(a.Shape) < 2 || batch < 0 || time < 0 || batch+time != 1 {
		return nil, nil, 0, 0, fmt.Errorf("batch_axis is %d and time_axis is %d for input %s, want 0 and 1", batch,
			time, a)
	}
	if lens.DType != ir.Int64 || !slices.Equal(lens.Shape, a.Shape[batch:batch+1]) {
		return nil, nil, 0, 0, fmt.Errorf("sequence_lens are %s, want one int64 for each of %d sequences", lens,
			a.Shape[batch])
	}
	return a, lens, batch, time, nil
}

func reverseShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, _, _, _, err := timed(n, in)
	if err != nil {
		return nil, err
	}
	return op.One(a.DType, a.Shape...)
}

func runReverse(c *op.Call) error {
	a, lens, batch, time, err := timed(c.Node, c.In)
	if err != nil {
		return err
	}
	strides, steps, inner := op.Strides(a.Shape), a.Shape[time], op.Product(a.Shape[2:])
	for i, n := range ir.View[int64](lens) {
		if n < 0 || n > steps {
			return fmt.Errorf("sequence %d has length %d of %d steps", i, n, steps)
		}
		at := int(int64(i) * strides[batch])
		// Backwards through the source, from the last step of the sequence.
		turned := &stridedTransfer{dst: at, src: at + int((n-1)*strides[time])}
		turned.add(n, strides[time], -strides[time])
		turned.add(inner, 1, 1)
		rest := &stridedTransfer{dst: at + int(n*strides[time])}
		rest.src = rest.dst
		rest.add(steps-n, strides[time], strides[time])
		rest.add(inner, 1, 1)
		for _, s := range []*stridedTransfer{turned, rest} {
			if !s.empty() {
				move(c.Pool, s, c.Out[0], a)
			}
		}
	}
	return nil
}
