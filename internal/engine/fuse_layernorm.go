package engine

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// fuseLayerNorm fuses (x - mean(x)) / sqrt(mean((x - mean(x))²) + ε) · γ + β along the last axis into
// LayerNormalization. i is the first ReduceMean.
func fuseLayerNorm(f *fusion, i int) bool {
	mean := f.p.steps[i]
	if !f.isRowMean(mean) {
		return false
	}
	x := mean.in[0]
	sub, iSub := f.onlyConsumer(mean.out[0])
	if !sub.is("Sub") || sub.in[0] != x {
		return false
	}
	gone := []int{i, iSub}
	d := sub.out[0]
	square, iSquare := f.squareOf(d)
	if square == nil {
		return false
	}
	variance, iVariance := f.onlyConsumer(square.out[0])
	if !f.isRowMean(variance) {
		return false
	}
	add, iAdd := f.onlyConsumer(variance.out[0])
	if !add.is("Add") {
		return false
	}
	o, _ := add.otherInput(variance.out[0])
	eps, ok := f.scalar(o)
	if !ok {
		return false
	}
	root, iRoot := f.onlyConsumer(add.out[0])
	if !root.is("Sqrt") {
		return false
	}
	div, iDiv := f.onlyConsumer(root.out[0])
	if !div.is("Div") || div.in[0] != d || !f.consumedBy(d, iSquare, iDiv) {
		return false
	}
	gone = append(gone, iSquare, iVariance, iAdd, iRoot, iDiv)
	scale, iScale := f.onlyConsumer(div.out[0])
	if !scale.is("Mul") {
		return false
	}
	gamma, _ := scale.otherInput(div.out[0])
	shift, iShift := f.onlyConsumer(scale.out[0])
	if !shift.is("Add") || !f.isRow(gamma) {
		return false
	}
	beta, _ := shift.otherInput(scale.out[0])
	if !f.isRow(beta) || f.constant(beta).Elems() != f.constant(gamma).Elems() {
		return false
	}
	s := fused(ir.OpID{Type: "LayerNormalization"}, 17, shift, []int{x, gamma, beta}, shift.out, intAttr("axis", -1),
		floatAttr("epsilon", eps))
	if s == nil {
		return false
	}
	f.replace(iShift, s, append(gone, iScale, iShift)...)
	return true
}

// isRowMean reports whether s is the mean along the last axis, with keepdims.
func (f *fusion) isRowMean(s *step) bool {
	if !s.is("ReduceMean") || !s.Bool("keepdims", true) {
		return false
	}
	axes := s.Ints("axes")
	if len(s.in) > 1 && s.in[1] != absent {
		a := f.array(s.in[1])
		if a == nil {
			return false
		}
		axes, _ = op.Ints(a)
	}
	return slices.Equal(axes, []int64{-1})
}

// squareOf is the step that squares d: d·d or d².
func (f *fusion) squareOf(d int) (*step, int) {
	for _, u := range f.consumers[d] {
		s := f.p.steps[u]
		if s.is("Mul") && s.in[0] == d && s.in[1] == d {
			return s, u
		}
		if s.is("Pow") && s.in[0] == d {
			if v, ok := f.scalar(s.in[1]); ok && v == 2 {
				return s, u
			}
		}
	}
	return nil, absent
}

// isRow reports whether slot o is a constant of rank 1.
func (f *fusion) isRow(o int) bool {
	a := f.constant(o)
	return a != nil && len(a.Shape) == 1 && a.DType == ir.Float
}
