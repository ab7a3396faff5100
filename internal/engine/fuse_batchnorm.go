package engine

import (
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// foldBatchNorm folds the scale of a BatchNormalization into the constant weight of the preceding Conv, and its shift
// into the bias. i is the Conv.
func foldBatchNorm(f *fusion, i int) bool {
	conv := f.p.steps[i]
	if !conv.is("Conv") || !f.isFloat(conv) || f.isQuantized(conv.in[1]) {
		return false
	}
	norm, iNorm := f.onlyConsumer(conv.out[0])
	// With batch statistics the factors follow from the images of the run.
	if !norm.is("BatchNormalization") || norm.Bool("training_mode", false) || len(norm.in) != 5 ||
		slices.Contains(norm.Consumed[1:], true) {
		return false
	}
	scale, shift := f.affine(norm)
	w := f.weight(conv.in[1])
	if scale == nil || w == nil || len(w.Shape) == 0 || int64(len(scale)) != w.Shape[0] {
		return false
	}
	if len(conv.in) > 2 && conv.in[2] != absent {
		b := f.array(conv.in[2])
		if b == nil || b.Elems() != int64(len(scale)) {
			return false
		}
		// (W·x + b)·s + t = (s·W)·x + (s·b + t)
		for c, v := range ir.View[float32](b) {
			shift[c] += v * scale[c]
		}
	}
	factors := f.p.addConst(ir.ArrayOf(scale, columnOf(len(scale), len(w.Shape))...))
	bias := f.p.addConst(ir.ArrayOf(shift, int64(len(shift))))
	scaled := f.p.add(slot{name: conv.Label + " weight"})
	// The lists by slot must have the three new slots before replace uses them.
	f.producers, f.consumers = append(f.producers, absent, absent, absent), append(f.consumers, nil, nil, nil)
	// As a step that is folded later, so that the weight is read only then and a sparse form stays sparse.
	mul := fused(ir.OpID{Type: "Mul"}, 14, norm, []int{conv.in[1], factors}, []int{scaled})
	made := fused(conv.ID, conv.Version, conv, []int{conv.in[0], scaled, bias}, norm.out[:1],
		slices.Collect(maps.Values(conv.Attrs()))...)
	if mul == nil || made == nil {
		return false
	}
	f.replace(iNorm, made, i, iNorm)
	// At the place of the Conv, as the scaled weight has to precede the convolution, which is at that of the
	// BatchNormalization.
	f.replace(i, mul)
	return true
}

// isQuantized reports whether slot o is dequantized: the values of a weight stay quantized, which those times the scale
// of a BatchNormalization are not.
func (f *fusion) isQuantized(o int) bool {
	s, _ := f.producer(o)
	return s.is("DequantizeLinear")
}

// affine is scale and shift of norm per channel, x·scale + shift, if its parameters are constants.
func (f *fusion) affine(norm *step) (scale, shift []float32) {
	var p [4][]float32 // scale, B, mean, variance
	for k := range p {
		a := f.array(norm.in[k+1])
		if a == nil || a.DType != ir.Float || k > 0 && len(a.Data) != 4*len(p[0]) {
			return nil, nil
		}
		p[k] = ir.View[float32](a)
	}
	eps := norm.Float("epsilon", 1e-5)
	scale, shift = make([]float32, len(p[0])), make([]float32, len(p[0]))
	for c := range scale {
		// In float64 and rounded once, so that folding adds no error but that of the factors.
		s := float64(p[0][c]) / math.Sqrt(float64(p[3][c])+float64(eps))
		scale[c], shift[c] = float32(s), float32(float64(p[1][c])-float64(p[2][c])*s)
	}
	return scale, shift
}

// columnOf is the shape [n, 1, …] of the given rank.
func columnOf(n, rank int) []int64 {
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = int64(n)
	return shape
}
