package prune

import (
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// mostPositions is the maximum number of output positions of a convolution that are observed in a run, spread over the
// images: neighbours have nearly the same inputs.
const mostPositions = 1024

// panel is the number of neighbouring positions whose patches are read at once.
const panel = 16

// filterShape is the shape of the weight of a convolution as its node reads it.
func (l *layer) filterShape() []int64 {
	for _, u := range l.uses {
		if u.Node == l.node {
			return u.Operand.Shape
		}
	}
	return nil
}

// observePatches adds the patches of a, images, to the moments of each group (im2col).
func (l *layer) observePatches(a *ir.Array, ms []inputStatistics) bool {
	x, ok := hessian.Floats(a)
	g, err := conv.GeometryOf(op.NewNode(l.node.Op, 0, l.node.Attrs, nil), a.Shape, l.filterShape())
	if !ok || err != nil {
		return false
	}
	patches := conv.PatchesOf(g, kernel.Bytes(make([]float32, g.TableSize()/4)))
	all := (g.OutArea() + panel - 1) / panel
	most := min(all, max(1, mostPositions/panel/max(1, g.Batch)))
	columns, row := make([]float32, l.k*panel), make([]float32, l.k)
	for i := range g.Products() {
		fill := patches.Of(conv.Images[float32]{Values: conv.Input(g, x, i)})
		for p := range most {
			// Evenly spread, the same ones in each run.
			first := p * all / most * panel
			last := min(first+panel, g.OutArea())
			fill(columns, 0, l.k, first, last)
			for lane := range last - first {
				l.patch(row, columns[lane:])
				ms[i%g.Groups].Add(row)
			}
		}
	}
	return true
}

// patch reorders a patch by taps, then by channels.
func (l *layer) patch(row, column []float32) {
	taps := l.k / l.channels
	for c := range l.channels {
		for t := range taps {
			row[t*l.channels+c] = column[(c*taps+t)*panel]
		}
	}
}
