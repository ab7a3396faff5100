package reduce

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/engine/elementwise/block"
	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// reducedAxes says for each axis of x whether a node reduces it. The axes are input 1, or
// the attribute where that is older.
func reducedAxes(n *op.Node, in []*ir.Array, fromInput bool) ([]bool, error) {
	axes := n.Ints("axes")
	if fromInput {
		axes = nil
		if a := op.Opt(in, 1); a != nil {
			var err error
			if axes, err = op.Ints(a); err != nil {
				return nil, err
			}
		}
	}
	rank := len(in[0].Shape)
	reduced := make([]bool, rank)
	if len(axes) == 0 {
		if !fromInput || !n.Bool("noop_with_empty_axes", false) {
			fillTrue(reduced)
		}
		return reduced, nil
	}
	for _, axis := range axes {
		i, err := op.Axis(axis, rank)
		if err != nil {
			return nil, err
		}
		if reduced[i] {
			return nil, fmt.Errorf("axis %d is named twice in axes %v", i, axes)
		}
		reduced[i] = true
	}
	return reduced, nil
}

func fillTrue(x []bool) { block.Fill(x, true) }

// reducedShape is the shape of what is left.
func reducedShape(shape []int64, reduced []bool, keep bool) []int64 {
	out := []int64{}
	for i, d := range shape {
		switch {
		case !reduced[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// lanes is a tensor as outer × n × inner: n elements, inner apart, are worked on together.
type lanes struct{ outer, n, inner int }

// lanesOf are the lanes of a along an axis that Shape has checked.
func lanesOf(a *ir.Array, axis int64) lanes {
	i := int(axis)
	if axis < 0 {
		i += len(a.Shape)
	}
	return lanes{
		outer: int(op.Product(a.Shape[:i])),
		n:     int(a.Shape[i]),
		inner: int(op.Product(a.Shape[i+1:])),
	}
}

// withAxis is shape with d in place of its length along an axis that has been checked.
func withAxis(shape []int64, axis int, d int64) []int64 {
	out := slices.Clone(shape)
	out[axis] = d
	return out
}
