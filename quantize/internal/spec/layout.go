package spec

import (
	"slices"

	"github.com/mcompress/mcompress/internal/invariants"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A ScaleLayout is the granularity of scales: element (b, r, c, i) of batch × rows × channels × inner has scale
// b·channels + c.
type ScaleLayout struct {
	batch, rows, channels, inner int64
	limit                        PieceLimit
}

// A PieceLimit is the number of elements up to which a weight is in memory at a time; 0 is pass.Block. Tests set small
// ones: what is stored must not depend on it.
type PieceLimit int64

// Elems is the number, with the default.
func (l PieceLimit) Elems() int64 {
	if l > 0 {
		return int64(l)
	}
	// So that any dependence on pieces shows in the bytes of ordinary models.
	if invariants.Enabled {
		return 509 // a prime, which no row or block divides
	}
	return pass.Block
}

// NumScales is the number of scales.
func (g ScaleLayout) NumScales() int64 { return g.batch * g.channels }

// Elems is the number of elements of the weight.
func (g ScaleLayout) Elems() int64 { return g.batch * g.rows * g.channels * g.inner }

// PerTensorLayout is one scale for n elements.
func PerTensorLayout(n int64) ScaleLayout {
	return ScaleLayout{batch: 1, rows: 1, channels: 1, inner: n}
}

// PerRowLayout is one scale for each of n rows of len elements.
func PerRowLayout(n, len int64) ScaleLayout {
	return ScaleLayout{batch: 1, rows: 1, channels: n, inner: len}
}

// PerColumnLayout is one scale for each column of each matrix of a batch.
func PerColumnLayout(batch, rows, cols int64) ScaleLayout {
	return ScaleLayout{batch: batch, rows: rows, channels: cols, inner: 1}
}

// PerAxisLayout is one scale for each index of one axis.
func PerAxisLayout(shape []int64, axis int) ScaleLayout {
	g, _ := LayoutOfAxes(shape, []int{axis})
	return g
}

// LayoutOfAxes is one scale for each index of some axes, and the shape of the scales, which broadcasts to that of the
// weight. Axes with and without scales may alternate three times; where they do more often, the outermost ones share
// scales.
func LayoutOfAxes(shape []int64, axes []int) (ScaleLayout, []int64) {
	if len(axes) == 0 {
		return PerTensorLayout((ir.Spec{Shape: shape}).Elems()), nil
	}
	const inner, channels, rows, batch = 0, 1, 2, 3
	scales := slices.Repeat([]int64{1}, len(shape))
	size, level, last := [...]int64{1, 1, 1, 1}, inner, 0 // the last axis of the batch
	// From the innermost axis outwards: runs of axes without and with scales alternate as inner, channels, rows and
	// batch.
	for i, d := range slices.Backward(shape) {
		kept := slices.Contains(axes, i)
		switch {
		case d == 1:
			continue
		case kept && (level == inner || level == rows), !kept && level == channels:
			if level++; level == batch {
				last = i
			}
		// A fifth run of axes: scales have four, so that the outermost elements share them.
		case !kept && level == batch: // elements of the batch share scales
			for j := range scales[i+1 : last+1] {
				scales[i+1+j] = 1
			}
			size[rows], size[batch], level = size[rows]*size[batch], 1, rows
		}
		if size[level] *= d; kept {
			scales[i] = d
		}
	}
	return ScaleLayout{batch: size[batch], rows: size[rows], channels: size[channels], inner: size[inner]}, scales
}
