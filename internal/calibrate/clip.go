package calibrate

import "math"

// within clips r to the observed values.
func (h *histogram) within(r Range) Range {
	return Range{min(0, max(r.Min, float64(h.low))), max(0, min(r.Max, float64(h.top)))}
}

// percentile is the range that holds a fraction p of the observed values; the rest is cut off in equal numbers at both
// ends.
func (h *histogram) percentile(p float64) Range {
	cut := int64(float64(h.total()) * (1 - p) / 2)
	return h.within(Range{h.edge(outside(h.counts, cut, 0, 1)), h.edge(outside(h.counts, cut, 2*half-1, -1) + 1)})
}

// outside is the first bin, counted from an end, of which not all values are cut off.
func outside(counts []int64, cut int64, from, step int) int {
	for i := from; ; i += step {
		if cut -= counts[i]; cut < 0 || i+step < 0 || i+step == len(counts) {
			return i
		}
	}
}

// leastError is the clipping range of minimum mean squared error: the rounding error inside, of values that are uniform
// over each quantization step, plus the clipping error outside. It shrinks the full range at one end after the other.
func (h *histogram) leastError(steps int) Range {
	m := newPowerSums(h)
	r := h.within(Range{math.Inf(-1), math.Inf(1)})
	// The best limit at one end depends on the other one, as they share the step.
	for range 2 {
		r.Max = h.search(r.Max, func(x float64) float64 { return m.error(Range{r.Min, x}, steps) })
		r.Min = h.search(r.Min, func(x float64) float64 { return m.error(Range{x, r.Max}, steps) })
	}
	return r
}

// candidates is the number of clipping limits tried at each end.
const candidates = 128

// search returns the limit between zero and end of minimum cost; of equal ones the largest.
func (h *histogram) search(end float64, cost func(float64) float64) float64 {
	best, least := end, cost(end)
	for i := candidates - 1; i > candidates/16; i-- {
		x := end * float64(i) / candidates
		if c := cost(x); c < least {
			best, least = x, c
		}
	}
	return best
}

// powerSums are prefix sums over bins of the number of values and of their first and second powers; a value counts as
// the middle of its bin.
type powerSums struct {
	h      *histogram
	n      []float64 // number of values in bins before i
	x1, x2 []float64 // sums of the values and of their squares
}

func newPowerSums(h *histogram) *powerSums {
	m := &powerSums{h: h, n: make([]float64, 2*half+1), x1: make([]float64, 2*half+1), x2: make([]float64, 2*half+1)}
	for i, c := range h.counts {
		x := h.edge(i) + h.width/2
		// Prefix sums: the error of a range takes constant time, whatever its number of bins.
		m.n[i+1] = m.n[i] + float64(c)
		m.x1[i+1] = m.x1[i] + float64(float64(c)*x)
		m.x2[i+1] = m.x2[i] + float64(float64(c)*x*x)
	}
	return m
}

// bin is the first bin that begins at or after x.
func (m *powerSums) bin(x float64) int {
	return min(max(int(math.Ceil(x/m.h.width))+half, 0), 2*half)
}

// error is the sum of squared quantization errors for the range r. The two bins next to zero count as exact zeros,
// which quantize without error: after a Relu they hold most of the values.
func (m *powerSums) error(r Range, steps int) float64 {
	lo, hi, end := m.bin(r.Min), m.bin(r.Max), 2*half
	step := (r.Max - r.Min) / float64(steps)
	rounded := m.n[hi] - m.n[lo] - float64(m.h.counts[half]+m.h.counts[half-1])
	cut := func(from, to int, x float64) float64 {
		return m.x2[to] - m.x2[from] - float64(2*x*(m.x1[to]-m.x1[from])) + float64(x*x*(m.n[to]-m.n[from]))
	}
	// step²/12 is the variance of rounding to steps. Differences of prefix sums may be below 0 by rounding.
	return float64(step*step/12*max(0, rounded)) + max(0, cut(0, lo, r.Min)) + max(0, cut(hi, end, r.Max))
}
