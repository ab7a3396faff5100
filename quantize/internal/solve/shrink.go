package solve

import "math"

// Rows of one sample are alike, so there are fewer to learn from than are counted: alike is by how many. On 17 real models 1, 3 and 8 leave
// sums of SQNR of 464, 467 and 465 dB at 4 bits; no shrinking leaves 452 dB.
const alike = 3

// mostShrunk is the most that is put in place of a Hessian.
const mostShrunk = 0.99

// Shrinkage is what rows that are too few make it wise to damp a Factor by: 0 where there are enough. Shrinking towards a multiple of the
// identity, as far as Ledoit and Wolf (A well-conditioned estimator for large-dimensional covariance matrices, 2004) find best, is that
// but for a factor, which rounding does not see.
func (h *Hessian) Shrinkage() float64 {
	mean, apart := h.mean(), 0.0 // from the multiple of the identity, squared
	for i := range h.K {
		row := h.sum[i*h.K+i : (i+1)*h.K]
		apart += float64((row[0] - mean) * (row[0] - mean))
		for _, v := range row[1:] {
			apart += float64(2 * v * v)
		}
	}
	norm := apart + float64(h.K)*mean*mean
	chance := h.fourth - norm/float64(h.n) // of that, what other rows would change
	share := math.Min(chance/apart, mostShrunk)
	if !(share > 0) {
		return 0 // also where nothing is known
	}
	return alike * share / (1 - share)
}
