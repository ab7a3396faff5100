package spec

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A ScaleLayout is the granularity of scales: element (b, r, c, i) of batch × rows × channels × inner has scale b·channels +
// c.
type ScaleLayout struct{ batch, rows, channels, inner int64 }

func (g ScaleLayout) NumScales() int64 { return g.batch * g.channels }

func (g ScaleLayout) Elems() int64 { return g.batch * g.rows * g.channels * g.inner }

// PerTensorLayout is one scale for n elements.
func PerTensorLayout(n int64) ScaleLayout { return ScaleLayout{1, 1, 1, n} }

// PerRowLayout is one scale for each of n rows of len elements.
func PerRowLayout(n, len int64) ScaleLayout { return ScaleLayout{1, 1, n, len} }

// PerColumnLayout is one scale for each column of each matrix of a batch.
func PerColumnLayout(batch, rows, cols int64) ScaleLayout { return ScaleLayout{batch, rows, cols, 1} }

// PerAxisLayout is one scale for each index of one axis.
func PerAxisLayout(shape []int64, axis int) ScaleLayout {
	g := ScaleLayout{1, 1, shape[axis], 1}
	for i, d := range shape {
		switch {
		case i < axis:
			g.rows *= d
		case i > axis:
			g.inner *= d
		}
	}
	return g
}

// LayoutOfAxes is one scale for each index of some axes, and the shape of the scales. The axes must be one axis, leading axes, or
// leading axes and the last one.
func LayoutOfAxes(shape []int64, axes []int) (ScaleLayout, []int64) {
	n := (ir.Spec{Shape: shape}).Elems()
	if len(axes) == 0 {
		return PerTensorLayout(n), nil
	}
	scales := make([]int64, len(shape))
	kept := int64(1)
	for i := range shape {
		scales[i] = 1
		if slices.Contains(axes, i) {
			scales[i] = shape[i]
			kept *= shape[i]
		}
	}
	last := axes[len(axes)-1]
	switch {
	case len(axes) == 1:
		return PerAxisLayout(shape, last), scales
	case last == len(axes)-1:
		return PerRowLayout(kept, n/max(1, kept)), scales
	default: // columns of a batch
		rows := shape[len(shape)-2]
		return PerColumnLayout(n/max(1, rows*shape[last]), rows, shape[last]), scales
	}
}
