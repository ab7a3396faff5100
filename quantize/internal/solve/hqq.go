package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Parameters of the half-quadratic iterations (Badri and Shaji: Half-Quadratic Quantization of Large Machine Learning
// Models, 2023): maximum number, initial penalty and its growth. Iterations stop when no zero point moves by more than
// still.
const (
	hqqSteps   = 20
	hqqPenalty = 10
	hqqGrowth  = 1.01
	hqqStill   = 1. / 64
)

// HQQ quantizes w, c.K rows by c.N columns, with zero points by half-quadratic quantization, which needs no data. HQQ's
// zero points are real numbers; here each is rounded to an integer, and kept where its squared error is below that of
// MSE. Symmetric weights have fixed zero points and are left to MSE. If c.Point is allocated, zero points stay real:
// see quantizeRealZeros.
func HQQ(c *Quantized, w []float32) {
	if c.Spec.Symmetric {
		MSE(c, w)
		return
	}
	newTile(c).each(w, func(t *tile) {
		t.search()
		if c.Point == nil {
			t.halfQuadratic()
			t.quantize(t.x)
		} else {
			t.quantizeRealZeros()
		}
	})
}

// try searches scales for the given scales and zero points, and keeps those with a lower error than best.
func (t *tile) try(x []float32, base, zero columns, best *columns) {
	var mid columns
	for j, z := range zero { // such that SearchBlock returns the same zero points
		mid[j] = (t.spec.Center - z) * base[j]
	}
	spec := t.spec
	spec.Factors = []float32{1}
	t.searchBlock(x, &base, &mid, best, spec)
}

// halfQuadratic improves the zero points of the search, for its scales.
func (t *tile) halfQuadratic() {
	zero := t.zero
	var inverse columns
	for j, s := range t.base {
		inverse[j] = 1 / s
	}
	t.settle(&zero, &inverse)
	// Kept only where its squared error is lower than that of the search, for the zero points rounded to integers.
	t.try(t.x, t.base, zero, &t.best)
	t.narrow()
	t.shifts()
}

// settle iterates until the zero points converge.
func (t *tile) settle(zero, inverse *columns) {
	lambda := float32(1. / hqqPenalty)
	for range hqqSteps {
		was := *zero
		// Errors beyond the threshold are outliers: they are left out of the mean that moves the zero point.
		kernel.ShrinkBlock(zero, t.x, inverse, t.spec.Lo, t.spec.Hi, lambda)
		moved := float32(0)
		for j, z := range zero {
			moved = max(moved, float32(math.Abs(float64(z-was[j]))))
		}
		if moved < hqqStill {
			return
		}
		lambda /= hqqGrowth
	}
}
