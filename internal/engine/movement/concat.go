package movement

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func concats() []op.Op {
	return []op.Op{
		{Type: "Concat", Since: 4, Shape: concatShape, Run: runConcat},
	}
}

func concatShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	if !n.Has("axis") {
		return nil, errors.New("attribute axis is missing")
	}
	spec, err := concatenated(in, n.Int("axis", 0))
	return []ir.Spec{spec}, err
}

// concatenated is the type of the tensors concatenated along that axis.
func concatenated(in []*ir.Array, axis int64) (ir.Spec, error) {
	first, err := op.Arg(in, 0, "0")
	if err != nil {
		return ir.Spec{}, err
	}
	at, err := op.Axis(axis, len(first.Shape))
	if err != nil {
		return ir.Spec{}, err
	}
	shape := slices.Clone(first.Shape)
	for i := 1; i < len(in); i++ {
		a, err := op.Arg(in, i, fmt.Sprint(i))
		if err != nil {
			return ir.Spec{}, err
		}
		if a.DType != first.DType || !fits(a.Shape, first.Shape, at) {
			return ir.Spec{}, fmt.Errorf("input %d is %s, which cannot be concatenated with %s along axis %d", i, a,
				first, at)
		}
		shape[at] += a.Shape[at]
		if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
			return ir.Spec{}, err
		}
	}
	return ir.Spec{DType: first.DType, Shape: shape}, nil
}

// fits reports whether the shapes are equal up to that axis.
func fits(a, b []int64, axis int) bool {
	return len(a) == len(b) && slices.Equal(a[:axis], b[:axis]) && slices.Equal(a[axis+1:], b[axis+1:])
}

func runConcat(c *op.Call) error {
	axis, err := op.Axis(c.Int("axis", 0), len(c.Out[0].Shape))
	if err != nil {
		return err
	}
	concat(c.Pool, c.Out[0], c.In, axis)
	return nil
}

// concat copies the parts into dst, concatenated along axis.
func concat(p *op.Pool, dst *ir.Array, parts []*ir.Array, axis int) {
	strides := op.Strides(dst.Shape)
	at := int64(0)
	for _, part := range parts {
		s := newStrided(part.Shape, strides, op.Strides(part.Shape))
		s.dst = int(at * strides[axis])
		if part.Elems() > 0 && !inPlace(dst, part, s.dst) {
			move(p, s, dst, part)
		}
		at += part.Shape[axis]
	}
}

// inPlace reports whether part is already in the memory of dst, from that element on.
func inPlace(dst, part *ir.Array, at int) bool {
	return len(part.Data) > 0 && &part.Data[0] == &dst.Data[at*int(dst.DType.Bits())/8]
}
