package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// Half-quadratic steps as Badri and Shaji have them (Half-Quadratic Quantization of Large Machine Learning Models, 2023):
// how many there are at most, the penalty of the first and what it grows by. They stop when no zero point moves by more
// than still.
const (
	hqqSteps   = 20
	hqqPenalty = 10
	hqqGrowth  = 1.01
	hqqStill   = 1. / 64
)

// HQQ rounds w, c.K rows by c.N columns, with zero points by half-quadratic quantization, which needs no data. They are
// real numbers there and whole ones here, so each is rounded, and stands where it leaves less squared error than what Balanced
// would take. Symmetric grids, whose zero points are given, are left to Balanced. Where c.Point has room for them, zero points
// stay real: see free.
func HQQ(c *Codes, w []float32) {
	if c.Grid.Symmetric {
		Balanced(c, w)
		return
	}
	newTile(c).each(w, func(t *tile) {
		t.search()
		if c.Point == nil {
			t.halfQuadratic()
			t.balance(t.x)
		} else {
			t.free()
		}
	})
}

// try finds the scales for the codes of steps and zero points, and keeps those that score better than best.
func (t *tile) try(x []float32, base, zero columns, best *columns) {
	var mid columns
	for j, z := range zero { // where SearchBlock finds the zero points again
		mid[j] = (t.grid.Center - z) * base[j]
	}
	grid := t.grid
	grid.Factors = []float32{1}
	kernel.SearchBlock(&t.scale, &t.zero, best, x, &base, &mid, grid)
}

// halfQuadratic looks for better zero points than those of the search, for its steps.
func (t *tile) halfQuadratic() {
	zero := t.zero
	var inverse columns
	for j, s := range t.base {
		inverse[j] = 1 / s
	}
	t.settle(&zero, &inverse)
	t.try(t.x, t.base, zero, &t.best)
	t.narrow()
	t.shifts()
}

// settle repeats steps until zero points stand still.
func (t *tile) settle(zero, inverse *columns) {
	lambda := float32(1. / hqqPenalty)
	for range hqqSteps {
		was := *zero
		kernel.ShrinkBlock(zero, t.x, inverse, t.grid.Lo, t.grid.Hi, lambda)
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
