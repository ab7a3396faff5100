package calibrate

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// half is the number of bins on either side of zero.
const half = 2048

// A histogram counts values in bins of equal width, a power of two, symmetric around zero. The width doubles when
// larger values arrive, so the counts depend on the values alone and not on their order.
type histogram struct {
	width    float64 // 0 while all values are zero
	counts   []int64 // bin half+i is from i·width to (i+1)·width; bins below zero are its mirror
	low, top float32
}

// add counts the values of x, which must be finite.
func (h *histogram) add(x []float32) {
	lo, hi := kernel.MinMax(x)
	h.low, h.top = min(h.low, lo), max(h.top, hi)
	if h.counts == nil {
		h.counts = make([]int64, 2*half)
	}
	// Before counting, so that no value is beyond the last bin.
	h.widen(float64(max(-lo, hi)))
	inverse := float32(0)
	if h.width > 0 {
		inverse = float32(1 / h.width)
	}
	count(h.counts, x, inverse)
}

// count adds each value of x to its bin. The product with a power of two is exact, and its integer part is the distance
// from zero in bins.
func count(counts []int64, x []float32, inverse float32) {
	counts = counts[:2*half]
	for _, v := range x {
		// Without a branch on the sign: bin half+i for i ≥ 0, and half-1-i for its mirror, which i^-1 is.
		b := math.Float32bits(v * inverse)
		i := int32(math.Float32frombits(b &^ (1 << 31)))
		counts[uint32(half+(i^-int32(b>>31)))%(2*half)]++
	}
}

// widen doubles the bin width until magnitudes up to most fit.
func (h *histogram) widen(most float64) {
	if most == 0 {
		return
	}
	if h.width == 0 {
		_, e := math.Frexp(most)
		// A power of two for any first value: widths that are doubled later are the same whatever value came first.
		h.width = math.Ldexp(1, max(e-11, -126)) // most is below half·width
	}
	for most >= half*h.width {
		h.width *= 2
		merge(func(i int) *int64 { return &h.counts[half+i] })
		merge(func(i int) *int64 { return &h.counts[half-1-i] })
	}
}

// merge adds pairs of adjacent bins on one side, from zero outwards.
func merge(at func(i int) *int64) {
	for i := range half {
		sum := int64(0)
		if 2*i+1 < half {
			sum = *at(2 * i) + *at(2*i + 1)
		}
		*at(i) = sum
	}
}

// total is the number of values counted.
func (h *histogram) total() int64 {
	n := int64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// edge is the lower edge of bin i; the last bin ends at edge(2·half).
func (h *histogram) edge(i int) float64 { return float64(i-half) * h.width }
