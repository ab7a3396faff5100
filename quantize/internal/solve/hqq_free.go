package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// How often free finds scales again, and how many steps it moves zero points by between: more gain less than 0.02 dB.
const (
	freeRounds = 2
	freeSteps  = 2
)

// free rounds with zero points that are any numbers: by turns those for which errors have a mean of 0, and the scales for them. No
// error counts as an outlier: what halfQuadratic leaves out of the mean would stay in the sums of a product.
func (t *tile) free() {
	point := t.zero
	for range freeRounds {
		t.center(&point)
		t.move(&point)
		t.rescale()
	}
	t.center(&point)
	t.narrowPoints(&point)
	t.move(&point)
	t.balance(t.moved)
	at := t.row/t.Grid.Block*t.N + t.col
	copy(t.Point[at:][:t.cols], point[:])
}

// center moves zero points to where errors have a mean of 0.
func (t *tile) center(point *columns) {
	var inverse columns
	for j, s := range t.scale {
		inverse[j] = 1 / s
	}
	for range freeSteps {
		kernel.ShrinkBlock(point, t.x, &inverse, t.grid.Lo, t.grid.Hi, math.MaxFloat32)
	}
}

// move adds to all numbers what makes zero points whole, and leaves those in shift: (x + part·scale)/scale is x/scale + part.
func (t *tile) move(point *columns) {
	var by columns
	for j, p := range point {
		whole := min(max(float32(math.RoundToEven(float64(p))), t.grid.Lo), t.grid.Hi)
		by[j], t.shift[j] = (p-whole)*t.scale[j], int32(whole)
	}
	if t.moved == nil {
		t.moved = make([]float32, cap(t.x))
	}
	t.moved = t.moved[:len(t.x)]
	for i := 0; i < len(t.x); i += kernel.BlockCols {
		from, to := (*columns)(t.x[i:]), (*columns)(t.moved[i:])
		for j, b := range by {
			to[j] = from[j] + b
		}
	}
}

// rescale takes the scales that suit the codes of moved numbers.
func (t *tile) rescale() {
	var zero, score columns
	for j, z := range t.shift {
		zero[j], score[j] = float32(z), -1
	}
	t.try(t.moved, t.scale, zero, &score)
	t.narrow()
}
