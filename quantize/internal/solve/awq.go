package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/gemm"
)

// A Matrix is a weight, K×N.
type Matrix struct {
	W []float32
	N int
}

// powers is the number of exponents that AWQ tries, from 0 (no scaling) to below 1.
const powers = 20

// AWQ returns K factors for the rows of all ws, whose common inputs are divided by them, before weights are rounded to
// nearest: a power of the inputs' mean magnitudes, with the exponent of minimum output error on x, rows of K inputs
// (Lin et al. 2023, arXiv:2306.00978, equations 4 and 5). Exponent 0 is among those tried: the error is never larger
// than without.
func AWQ(p gemm.Pool, x []float32, k int, ws []Matrix, g Spec) []float64 {
	mean := magnitudes(x, k)
	best, least := make([]float64, k), math.Inf(1)
	for t := range powers {
		f := tempered(mean, float64(t)/powers)
		sum := 0.0
		for _, w := range ws {
			sum += w.scaledLoss(p, x, f, g)
		}
		// Strictly less: of equal errors the smallest exponent, so that nothing is scaled without gain.
		if sum < least {
			best, least = f, sum
		}
	}
	return best
}

// magnitudes are the means of |x| by column; columns of zeros count as the smallest non-zero mean.
func magnitudes(x []float32, k int) []float64 {
	mean, least := make([]float64, k), math.Inf(1)
	for i, v := range x {
		mean[i%k] += math.Abs(float64(v))
	}
	for _, m := range mean {
		if m > 0 {
			least = min(least, m)
		}
	}
	for i, m := range mean {
		if m == 0 {
			mean[i] = least
		}
		if math.IsInf(least, 1) {
			mean[i] = 1
		}
	}
	return mean
}

// tempered are the means to a power, normalized around 1.
func tempered(mean []float64, power float64) []float64 {
	f := make([]float64, len(mean))
	low, high := math.Inf(1), 0.0
	for i, m := range mean {
		f[i] = math.Pow(m, power)
		low, high = min(low, f[i]), max(high, f[i])
	}
	// The product of both may overflow before its root is taken.
	middle := math.Sqrt(low) * math.Sqrt(high)
	for i := range f {
		f[i] /= middle
	}
	return f
}

// scaledLoss is |x·(w-q)|², where q is w rounded to nearest with its rows scaled by f.
func (m Matrix) scaledLoss(p gemm.Pool, x []float32, f []float64, g Spec) float64 {
	k := len(f)
	scaled, errors := make([]float32, len(m.W)), make([]float32, len(m.W))
	for i, w := range m.W {
		scaled[i] = w * float32(f[i/m.N])
	}
	c := newQuantized(k, m.N, g)
	MSE(c, scaled)
	for i, w := range m.W {
		// Divided again, as the inputs are: the product with the unscaled x is the error of the outputs.
		errors[i] = w - c.Weight(i/m.N, i%m.N)/float32(f[i/m.N])
	}
	s := gemm.Shape{M: len(x) / k, N: m.N, K: k}
	y, work := make([]float32, s.M*s.N), make([]byte, gemm.FloatWork(s, 1, p.Workers(), false))
	gemm.Float(p, s, work, gemm.FloatProduct{A: gemm.Rows(x, k), B: gemm.Rows(errors, m.N), C: y, Stride: m.N})
	sum := 0.0
	for _, v := range y {
		sum += float64(v) * float64(v)
	}
	return sum
}
