package hessian

import "math"

// correlatedRows is the assumed number of correlated rows per independent row: rows of one sample resemble each other.
// On 17 real models 1, 3 and 8 give sums of output SQNR of 464, 467 and 465 dB at 4 bits; without shrinkage 452 dB.
const correlatedRows = 3

// maxShrinkage is the maximum shrinkage.
const maxShrinkage = 0.99

// Shrinkage is the additional dampening of a Factor for few samples: with few samples the Hessian is noisy; with enough
// it is 0. It is the optimal shrinkage towards a multiple of the identity (Ledoit and Wolf: A well-conditioned
// estimator for large-dimensional covariance matrices, 2004), up to a common factor that does not change the rounding.
func (h *Hessian) Shrinkage() float64 {
	mean, apart := h.mean(), 0.0 // squared distance from the multiple of the identity
	rows := make([]float64, h.K)
	h.pool.For(h.K, func(i int) { rows[i] = squaresOf(h.sum[i*h.K+i:(i+1)*h.K], mean) })
	for _, r := range rows {
		apart += r
	}
	norm := apart + float64(h.K)*mean*mean
	chance := h.fourth - norm/float64(h.n) // of that, the expected sampling noise
	fraction := math.Min(chance/apart, maxShrinkage)
	if !(fraction > 0) {
		return 0 // also without samples
	}
	return correlatedRows * fraction / (1 - fraction)
}

// squaresOf is the sum of squares of a row of the upper triangle and of the same column of the lower, with mean
// subtracted on the diagonal.
func squaresOf(row []float32, mean float64) float64 {
	off, sum := float64(row[0])-mean, 0.0
	for _, v := range row[1:] {
		sum += float64(float64(v) * float64(v))
	}
	return float64(off*off) + 2*sum
}
