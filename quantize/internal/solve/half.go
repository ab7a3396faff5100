package solve

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// stored is a scale as it is stored: with Half, rounded away from 0 to float16, so that the quantization range does not
// shrink. The relative increase is at most 2⁻¹⁰; below 2⁻¹⁴ (subnormal numbers) the increase is at most 2⁻²⁴, which is
// also the spacing of float16 weights there. Scales above the float16 range are left to the caller to reject.
func (g Spec) stored(scale float32) float32 {
	const dropped = 1<<13 - 1 // the bits of a float32 fraction beyond those of float16
	switch m := math.Abs(float64(scale)); {
	case !g.Half:
		return scale
	case m < 0x1p-14:
		return float32(math.Copysign(math.Ceil(m*0x1p24)*0x1p-24, float64(scale)))
	}
	return math.Float32frombits((math.Float32bits(scale) + dropped) &^ dropped)
}

// narrow rounds scales to their stored type before weights are quantized with them.
func (t *tile) narrow() {
	for j, s := range t.scale {
		t.scale[j] = t.Spec.stored(s)
	}
}

// narrowPoints rounds real zero points to their stored type.
func (t *tile) narrowPoints(point *columns) {
	if !t.Spec.Half {
		return
	}
	var half [kernel.BlockCols]uint16
	kernel.F16FromF32(half[:], point[:])
	kernel.F32FromF16(point[:], half[:])
}
