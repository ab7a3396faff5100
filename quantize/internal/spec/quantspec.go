package spec

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A QuantSpec is an 8-bit quantization scheme: real = (q - zero point) * scale.
type QuantSpec struct {
	Unsigned    bool
	Symmetric   bool
	ReduceRange bool // 7 bits, so that U8S8 products do not saturate without VNNI
	PerTensor   bool
	BiasScales  bool // the scale of an int32 bias is a multiple of that of the channel, also where that is all zeros
}

// biasOfZeros is the scale of zeros with BiasScales. The bias keeps 2⁻¹³ of the scale of activations, and may be 2¹⁸
// times as large: of 1, it would be rounded to whole scales of activations, mostly to 0.
const biasOfZeros = 0x1p-12

// DType is the type of quantized values.
func (s QuantSpec) DType() ir.DType {
	if s.Unsigned {
		return ir.Uint8
	}
	return ir.Int8
}

// Levels is the range of quantized values. It is even around the zero point for symmetric schemes; the reduced int8
// range is ±64, like ONNX Runtime's.
func (s QuantSpec) Levels() kernel.IntRange {
	switch z := s.ZeroPoint(); {
	case s.Symmetric:
		return kernel.IntRange{Lo: z - s.maxMagnitude(), Hi: z + s.maxMagnitude()}
	case s.Unsigned && s.ReduceRange:
		return kernel.IntRange{Lo: 0, Hi: 127}
	case s.Unsigned:
		return kernel.IntRange{Lo: 0, Hi: 255}
	case s.ReduceRange:
		return kernel.IntRange{Lo: -64, Hi: 64}
	}
	return kernel.IntRange{Lo: -128, Hi: 127}
}

// ZeroPoint is the zero point of the symmetric scheme.
func (s QuantSpec) ZeroPoint() int32 {
	switch {
	case s.Unsigned && s.ReduceRange:
		return 64
	case s.Unsigned:
		return 128
	}
	return 0
}

// maxMagnitude is the largest distance from the zero point in the symmetric scheme. It does not depend on the type:
// uint8 values are int8 values plus 128.
func (s QuantSpec) maxMagnitude() int32 {
	if s.ReduceRange {
		return 64
	}
	return 127
}

// QParams is the scale and zero point for values in [lo, hi]. A channel of zeros has scale 1, or biasOfZeros. It
// returns false for a scale that is not a normal float32, or whose product with a quantized value overflows: it would
// not represent the values.
func (s QuantSpec) QParams(lo, hi float32) (scale float32, zero int32, ok bool) {
	if lo == 0 && hi == 0 {
		if scale = 1; s.BiasScales {
			scale = biasOfZeros
		}
		if s.Symmetric {
			zero = s.ZeroPoint()
		}
		return scale, zero, true
	}
	if s.Symmetric {
		scale = max(-lo, hi) / float32(s.maxMagnitude())
		return scale, s.ZeroPoint(), representable(scale, float32(s.maxMagnitude()))
	}
	c := s.Levels()
	lo, hi = min(lo, 0), max(hi, 0)
	scale = (hi - lo) / float32(c.Hi-c.Lo)
	// Before the division by it, which would be infinite or NaN.
	if !IsNormal(scale) {
		return scale, 0, false
	}
	// The zero point is rounded: a range shifts by up to half a step, which clips at one end.
	z := float32(c.Lo) - lo/scale
	zero = min(max(int32(math.RoundToEven(float64(z))), c.Lo), c.Hi)
	return scale, zero, representable(scale, float32(max(c.Hi-zero, zero-c.Lo)))
}

// representable reports whether scale is a normal float32 and its product with the largest quantized value is finite.
// The product may exceed the largest weight, as scales are rounded.
func representable(scale, largest float32) bool {
	return IsNormal(scale) && scale*largest <= math.MaxFloat32
}

// IsNormal reports whether x is neither infinite nor below the smallest normal float32.
func IsNormal(x float32) bool {
	return x >= 0x1p-126 && x <= math.MaxFloat32
}
