package reduce

import "github.com/mcompress/mcompress/internal/engine/elementwise/block"

// meanVar accumulates the number, the mean, and the sum of squared deviations of elements.
type meanVar struct{ n, mean, squares float64 }

// add adds n more elements (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979).
func (m *meanVar) add(n int, mean, variance float64) {
	count, distance := float64(n), mean-m.mean
	total := m.n + count
	// Pairwise: the sum of squares minus the square of the sum would cancel.
	m.squares += variance*count + distance*distance*m.n*count/total
	m.mean += distance * count / total
	m.n = total
}

// variance is that of the population.
func (m *meanVar) variance() float64 { return m.squares / m.n }

// measure adds n elements from at on. spread computes mean and variance of a block.
func measure[T floatElement](m *meanVar, in block.Loader[T], at, n int, buf []T,
	spread func([]T) (mean, variance float64)) {
	for ; n > 0; n -= block.Len {
		x := in.Block(buf, at, min(n, block.Len))
		mean, variance := spread(x)
		m.add(len(x), mean, variance)
		at += len(x)
	}
}

// meanVariance is the plain Go version of kernel.MeanVariance in float64.
func meanVariance(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x))
}
