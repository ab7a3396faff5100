package reduce

import "github.com/mcompress/mcompress/internal/engine/elementwise/block"

// moments are the number, the mean, and the sum of squared distances from it, of the
// elements seen so far.
type moments struct{ n, mean, squares float64 }

// add takes in n more elements (Chan, Golub and LeVeque, "Updating formulae and a pairwise
// algorithm for computing sample variances", 1979).
func (m *moments) add(n int, mean, variance float64) {
	count, distance := float64(n), mean-m.mean
	total := m.n + count
	m.squares += variance*count + distance*distance*m.n*count/total
	m.mean += distance * count / total
	m.n = total
}

// variance is that of the population.
func (m *moments) variance() float64 { return m.squares / m.n }

// measure takes in n elements from at on. spread gives mean and variance of a block.
func measure[T floating](m *moments, in block.Reader[T], at, n int, buf []T, spread func([]T) (mean, variance float64)) {
	for ; n > 0; n -= block.Len {
		x := in.Block(buf, at, min(n, block.Len))
		mean, variance := spread(x)
		m.add(len(x), mean, variance)
		at += len(x)
	}
}

// meanVariance is the twin of kernel.MeanVariance.
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
