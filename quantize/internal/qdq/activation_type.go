package qdq

import (
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// constant is a quantized value as the payload of a constant.
func (r *ActivationType) constant(value int64) []byte {
	if r.is16Bit() {
		return kernel.Bytes([]uint16{uint16(value)})
	}
	return []byte{byte(value)}
}

// fakeQuantize replaces each of x by its dequantized value.
func (r *ActivationType) fakeQuantize(x []float32, within calibrate.Range) {
	scale, zero, _ := r.qparams(within)
	low, top := float32(r.min-zero), float32(r.max-zero)
	for i, v := range x {
		x[i] = min(max(float32(math.RoundToEven(float64(v/scale))), low), top) * scale
	}
}

// An ActivationType is the quantized data type of activations.
type ActivationType struct {
	DType     ir.DType
	min, max  int64
	Symmetric bool
}

// ActivationTypeOf is the type called name: uint8, int8, uint16 or int16.
func ActivationTypeOf(name string) ActivationType {
	return map[string]ActivationType{
		"uint8":  {DType: ir.Uint8, max: math.MaxUint8},
		"int8":   {DType: ir.Int8, min: math.MinInt8, max: math.MaxInt8},
		"uint16": {DType: ir.Uint16, max: math.MaxUint16},
		"int16":  {DType: ir.Int16, min: math.MinInt16, max: math.MaxInt16},
	}[name]
}

func (r *ActivationType) is16Bit() bool { return r.max-r.min > math.MaxUint8 }

// qparams is the scale and zero point of a range, false for a scale that is not a normal float32.
func (r *ActivationType) qparams(x calibrate.Range) (scale float32, zero int64, ok bool) {
	middle := (r.min + r.max + 1) / 2
	if r.Symmetric {
		scale = float32(max(-x.Min, x.Max) / float64(r.max-middle))
		zero = middle
	} else {
		scale = float32((x.Max - x.Min) / float64(r.max-r.min))
		zero = r.min
		if scale > 0 {
			// 0 is a level exactly, as padding needs it: the zero point is an integer, which shifts the range by up to half a
			// step.
			zero = min(max(r.min-int64(math.RoundToEven(x.Min/float64(scale))), r.min), r.max)
		}
	}
	// An activation that is always 0, such as after a dead Relu, is exact at any scale.
	if x.Min == 0 && x.Max == 0 {
		return 1, zero, true
	}
	return scale, zero, spec.IsNormal(scale)
}
