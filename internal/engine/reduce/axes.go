package reduce

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// reducedAxes marks the axes of x that a node reduces: those of input 1, or of the attribute in older versions.
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

// axesMask marks those of rank axes that are among axes.
func axesMask(axes []int64, rank int) ([]bool, error) {
	mask := make([]bool, rank)
	for _, axis := range axes {
		i, err := op.Axis(axis, rank)
		if err != nil {
			return nil, err
		}
		if mask[i] {
			return nil, fmt.Errorf("axis %d is repeated in axes %v", i, axes)
		}
		mask[i] = true
	}
	return mask, nil
}

// reducedShape is the shape of the result.
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
