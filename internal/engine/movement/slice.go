package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// cuts are Slice.
func cuts() []op.Op {
	return []op.Op{
		{Type: "Slice", Since: 1, Shape: sliceShape(listAttribute), Run: runSlice(listAttribute)},
		{Type: "Slice", Since: 10, Shape: sliceShape(listInput), Run: runSlice(listInput), Pack: packSlice},
		{Domain: "mcompress", Type: "Slice", Since: 1, Shape: sliceShape(listAttribute), Run: runSlice(listAttribute)},
	}
}

// A span is the range of a slice along one axis.
type span struct{ start, step, n int64 }

// spans are the ranges of Slice along each axis of a.
func spans(n *op.Node, in []*ir.Array, from list) (*ir.Array, []span, error) {
	a, err := op.Arg(in, 0, "data")
	if err != nil {
		return nil, nil, err
	}
	var lists [4][]int64
	var given [4]bool
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		if lists[i], given[i], err = from(n, in, name, i+1); err != nil {
			return nil, nil, err
		}
	}
	if !given[0] || !given[1] {
		return nil, nil, errors.New("starts or ends are missing")
	}
	out := make([]span, len(a.Shape))
	for i, d := range a.Shape {
		out[i] = span{0, 1, d}
	}
	starts := lists[0]
	for i := 1; i < len(lists); i++ {
		if given[i] && len(lists[i]) != len(starts) {
			return nil, nil, fmt.Errorf("starts, ends, axes and steps differ in length: %v", lists)
		}
	}
	if !given[2] && len(starts) > len(a.Shape) {
		return nil, nil, fmt.Errorf("starts %v for a tensor of rank %d", starts, len(a.Shape))
	}
	for i, start := range starts {
		axis, step := i, int64(1)
		if given[2] {
			if axis, err = op.Axis(lists[2][i], len(a.Shape)); err != nil {
				return nil, nil, err
			}
		}
		if given[3] {
			step = lists[3][i]
		}
		if step == 0 {
			return nil, nil, fmt.Errorf("the step of axis %d is 0", axis)
		}
		out[axis] = spanOf(start, lists[1][i], step, a.Shape[axis])
	}
	return a, out, nil
}

// spanOf clamps start and end to an axis of that size (ONNX operator Slice). It is Python's slice except for a start
// before the axis with a negative step, which ONNX clamps to the first element.
func spanOf(start, end, step, size int64) span {
	step = min(max(step, -size-1), size+1) // one step leaves the axis anyway
	if start < 0 {
		start += size
	}
	if end < 0 {
		end += size
	}
	if step > 0 {
		start, end = within(start, 0, size), within(end, 0, size)
		return span{start, step, max(0, (end-start+step-1)/step)}
	}
	start, end = within(start, 0, size-1), within(end, -1, size-1)
	return span{start, step, max(0, (start-end-step-1)/-step)}
}

func within(x, low, high int64) int64 { return min(max(x, low), high) }

func sliceShape(from list) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		a, taken, err := spans(n, in, from)
		if err != nil {
			return nil, err
		}
		shape := slices.Clone(a.Shape)
		for i, s := range taken {
			shape[i] = s.n
		}
		return op.One(a.DType, shape...)
	}
}

func runSlice(from list) func(*op.Call) error {
	return func(c *op.Call) error {
		src, taken, err := spans(c.Node, c.In, from)
		if err != nil {
			return err
		}
		dst := c.Out[0]
		from, to := op.Strides(src.Shape), op.Strides(dst.Shape)
		s := &stridedTransfer{}
		for i, t := range taken {
			s.src += int(t.start * from[i])
			s.add(t.n, to[i], t.step*from[i])
		}
		move(c.Pool, s, dst, src)
		return nil
	}
}
