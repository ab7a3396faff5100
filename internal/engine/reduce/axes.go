package reduce

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
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
	if len(axes) == 0 {
		reduced := make([]bool, len(in[0].Shape))
		if !fromInput || !n.Bool("noop_with_empty_axes", false) {
			block.Fill(reduced, true)
		}
		return reduced, nil
	}
	return axesMask(axes, len(in[0].Shape))
}

// axesMask says for each of rank axes whether it is among axes.
func axesMask(axes []int64, rank int) ([]bool, error) {
	mask := make([]bool, rank)
	for _, axis := range axes {
		i, err := op.Axis(axis, rank)
		if err != nil {
			return nil, err
		}
		if mask[i] {
			return nil, fmt.Errorf("axis %d is named twice in axes %v", i, axes)
		}
		mask[i] = true
	}
	return mask, nil
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
