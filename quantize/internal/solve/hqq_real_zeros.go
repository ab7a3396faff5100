package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// The number of scale updates of quantizeRealZeros, and of zero-point updates between two of them: more gain less than
// 0.02 dB.
const (
	freeRounds = 2
	freeSteps  = 2
)

// quantizeRealZeros quantizes with real zero points: alternately the zero points of zero mean error, and the scales for
// them. No error is treated as an outlier: an error that halfQuadratic excludes from the mean would remain in the
// output.
func (t *tile) quantizeRealZeros() {
	point := t.zero
	for range freeRounds {
		t.center(&point)
		t.move(&point)
		t.rescale()
	}
	t.center(&point)
	// Before values are rounded with them: an error of a stored zero point would shift all values of the block.
	t.narrowPoints(&point)
	t.move(&point)
	t.quantize(t.shifted)
	at := t.row/t.Spec.Block*t.N + t.col
	copy(t.Point[at:][:t.cols], point[:])
}

// center sets zero points such that errors have a mean of 0.
func (t *tile) center(point *columns) {
	var inverse columns
	for j, s := range t.scale {
		inverse[j] = 1 / s
	}
	for range freeSteps {
		kernel.ShrinkBlock(point, t.x, &inverse, t.spec.Lo, t.spec.Hi, math.MaxFloat32)
	}
}

// move shifts all values such that zero points become integers, stored in shift: (x + part·scale)/scale is x/scale +
// part.
func (t *tile) move(point *columns) {
	var by columns
	for j, p := range point {
		whole := min(max(float32(math.RoundToEven(float64(p))), t.spec.Lo), t.spec.Hi)
		by[j], t.shift[j] = (p-whole)*t.scale[j], int32(whole)
	}
	if t.shifted == nil {
		t.shifted = make([]float32, cap(t.x))
	}
	t.shifted = t.shifted[:len(t.x)]
	for i := 0; i < len(t.x); i += kernel.BlockCols {
		from, to := (*columns)(t.x[i:]), (*columns)(t.shifted[i:])
		for j, b := range by {
			to[j] = from[j] + b
		}
	}
}

// rescale computes the optimal scales for the quantized values of the shifted values.
func (t *tile) rescale() {
	var zero, score columns
	for j, z := range t.shift {
		zero[j], score[j] = float32(z), -1
	}
	t.try(t.shifted, t.scale, zero, &score)
	t.narrow()
}
