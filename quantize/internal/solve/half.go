package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// stored is a scale as it is kept: of Half, the float16 that is no nearer to 0, so that codes which are found for it reach at least as
// far as they would. It is more by a part of 2⁻¹⁰ at most or, below 2⁻¹⁴, where those numbers lie evenly, by 2⁻²⁴, which is also how
// far float16 weights are apart there. What is above all of them is left for others to find.
func (g Grid) stored(scale float32) float32 {
	const dropped = 1<<13 - 1 // the bits of a float32's fraction that float16 does not have
	switch m := math.Abs(float64(scale)); {
	case !g.Half:
		return scale
	case m < 0x1p-14:
		return float32(math.Copysign(math.Ceil(m*0x1p24)*0x1p-24, float64(scale)))
	}
	return math.Float32frombits((math.Float32bits(scale) + dropped) &^ dropped)
}

// narrow makes scales what is stored, before codes are found for them.
func (t *tile) narrow() {
	for j, s := range t.scale {
		t.scale[j] = t.Grid.stored(s)
	}
}

// narrowPoints rounds real zero points to what is stored.
func (t *tile) narrowPoints(point *columns) {
	if !t.Grid.Half {
		return
	}
	var half [kernel.BlockCols]uint16
	kernel.F16FromF32(half[:], point[:])
	kernel.F32FromF16(point[:], half[:])
}
