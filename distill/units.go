package distill

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// units are the parts of a weight whose norms --max-norm limits: the incoming weights of one unit (Srivastava et al.,
// Dropout, 2014, section 5.1). Each index of axis is one in each of the blocks into which the axes before it are divided.
type units struct{ axis, blocks int64 }

// unitsOf returns the units of a parameter: by the layer that reads it, as rows are the units of a Gemm with transB, of
// PyTorch's Linear, and columns those of one without.
func unitsOf(p *grad.Param) units {
	shape := p.Tensor.Shape
	axes, ok := layerAxes(p.Value, len(shape))
	switch {
	case ok && len(axes.Output) == 1:
		u := units{int64(axes.Output[0]), max(1, axes.Shared)}
		for _, i := range axes.Batch { // before Output, as in the directions of LSTM
			u.blocks *= shape[i]
		}
		return u
	case len(shape) == 2:
		return units{1, 1}
	}
	return units{0, 1}
}

// layerAxes returns the axes of a weight of that rank in the first layer that reads it, directly or transposed; ok is
// false if there is none.
func layerAxes(v *ir.Value, rank int) (axes operator.Axes, ok bool) {
	for _, u := range v.Uses() {
		if u.Node == nil {
			continue
		}
		if axes, ok := operator.Of(u.Node).Input(u.Index).Axes(u.Node, rank); ok {
			return axes, true
		}
		perm := u.Node.Attr("perm")
		if rank != 2 || !u.Node.Op.Is("Transpose") || perm != nil && slices.Equal(perm.Ints, []int64{0, 1}) {
			continue
		}
		if axes, ok := layerAxes(u.Node.Outputs[0], rank); ok {
			axes.Output, axes.Reduction = transposed(axes.Output), transposed(axes.Reduction)
			return axes, true
		}
	}
	return operator.Axes{}, false
}

// transposed returns the axes of a matrix in its transpose.
func transposed(axes []int) []int {
	axes = slices.Clone(axes)
	for i, a := range axes {
		axes[i] = 1 - a
	}
	return axes
}
