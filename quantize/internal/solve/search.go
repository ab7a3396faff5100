package solve

import (
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
)

// The search of scales with minimum weighted squared error tries this number of clipping ranges, from the full range of
// a column down, each followed by the optimal scale for its quantized values.
const (
	clippingTries = 12
	clippingStep  = 0.04
	refits        = 2
)

// tiny is the range below which a scale is not a normal float32.
const tiny = 256 * 0x1p-126

// space is the search space of g.
func (g Spec) space() kernel.RoundSpace {
	s := kernel.RoundSpace{Low: float32(g.Low), High: float32(g.High), Middle: float32(g.middle()), Symmetric: g.Symmetric,
		Refits: refits}
	for t := range clippingTries {
		s.Fractions = append(s.Fractions, 1-float32(clippingStep*float32(t)))
	}
	return s
}

// best sets the scales and zero points of the first columns of u, up to kernel.RoundLanes.
func (g Spec) best(scale []float32, zero []int32, u []float32, weight []float32, space kernel.RoundSpace) {
	var r kernel.RoundResult
	u, factor := scaled(u, len(weight))
	kernel.RoundSearch(&r, u, wide, weight, space)
	for j := range min(len(scale), kernel.RoundLanes) {
		scale[j], zero[j] = g.stored(r.Scale[j]/factor[j]), int32(r.Zero[j])
		// All of the block becomes zeros: no scale of it is a normal float32.
		if max(r.High[j], -r.Low[j])/factor[j] < tiny {
			scale[j], zero[j] = g.stored(1), g.middle()
		}
	}
}

// scaled multiplies columns of u, rows × wide, by a power of two each, so that sums of their squares are within the
// range of float32. It returns u itself if they are.
func scaled(u []float32, rows int) (_ []float32, factor [kernel.RoundLanes]float32) {
	some := false
	for j := range factor {
		peak := float32(0)
		for i := range rows {
			peak = max(peak, u[i*wide+j], -u[i*wide+j])
		}
		factor[j] = unit(peak)
		some = some || factor[j] != 1
	}
	if !some {
		return u, factor
	}
	u = slices.Clone(u[:(rows-1)*wide+kernel.RoundLanes])
	for i := range rows {
		for j, f := range factor {
			u[i*wide+j] *= f
		}
	}
	return u, factor
}
