package hessian

import "math"

// alike is the assumed number of correlated rows per independent row: rows of one sample resemble each other. On 17 real models
// 1, 3 and 8 give sums of output SQNR of 464, 467 and 465 dB at 4 bits; without shrinkage 452 dB.
const alike = 3

// mostShrunk is the maximum shrinkage.
const mostShrunk = 0.99

// Shrinkage is the additional dampening of a Factor for few samples: with few samples the Hessian is noisy; with enough it is 0. It is
// the optimal shrinkage towards a multiple of the identity (Ledoit and Wolf: A well-conditioned estimator for large-dimensional
// covariance matrices, 2004), up to a common factor that does not change the rounding.
func (h *Hessian) Shrinkage() float64 {
	mean, apart := h.mean(), 0.0 // squared distance from the multiple of the identity
	for i := range h.K {
		row := h.sum[i*h.K+i : (i+1)*h.K]
		off := float64(row[0]) - mean
		apart += float64(off * off)
		for _, v := range row[1:] {
			apart += float64(2 * float64(v) * float64(v))
		}
	}
	norm := apart + float64(h.K)*mean*mean
	chance := h.fourth - norm/float64(h.n) // of that, the expected sampling noise
	fraction := math.Min(chance/apart, mostShrunk)
	if !(fraction > 0) {
		return 0 // also without samples
	}
	return alike * fraction / (1 - fraction)
}
