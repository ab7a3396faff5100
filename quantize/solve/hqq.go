package solve

import (
	"math"

	"github.com/mcompress/mcompress/kernel"
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

// hqqFactors are the steps that zero points are found for, as parts of what spans a block.
var hqqFactors = []float32{1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65}

// HQQ rounds w, c.K rows by c.N columns, with zero points by half-quadratic quantization, which needs no data. They are
// real numbers there and whole ones here, so each is rounded, and of several steps, and what Nearest would take, the one with the least
// squared error stands. Symmetric grids, whose zero points are given, are left to Nearest.
func HQQ(c *Codes, w []float32) {
	if c.Grid.Symmetric {
		Nearest(c, w, true)
		return
	}
	t := newTile(c)
	for row := 0; row < c.K; row += c.Grid.Block {
		for col := 0; col < c.N; col += kernel.BlockCols {
			t.load(w, row, col)
			t.search()
			t.halfQuadratic()
			t.round()
			t.store()
		}
	}
}

// halfQuadratic looks for better zero points than those of the search.
func (t *tile) halfQuadratic() {
	one := t.grid
	for i := range hqqFactors {
		one.Factors = hqqFactors[i : i+1]
		var zero, inverse, mid columns
		for j, b := range t.base {
			inverse[j] = 1 / (b * hqqFactors[i])
			zero[j] = t.grid.Center - t.mid[j]*inverse[j]
		}
		t.settle(&zero, &inverse)
		for j := range mid { // where SearchBlock finds zero points again
			mid[j] = (t.grid.Center - zero[j]) / inverse[j]
		}
		kernel.SearchBlock(&t.scale, &t.zero, &t.best, t.x, &t.base, &mid, one)
	}
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
