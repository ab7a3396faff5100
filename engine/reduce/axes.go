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
			block.Fill(reduced, true)
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

// withAxis is shape with d in place of its length along an axis that has been checked.
func withAxis(shape []int64, axis int, d int64) []int64 {
	out := slices.Clone(shape)
	out[axis] = d
	return out
}
