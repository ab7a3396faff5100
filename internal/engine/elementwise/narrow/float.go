package narrow

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// A format is a float with one sign bit, exp exponent bits and man fraction bits, with subnormals (ONNX, "Float stored
// in 8 bits"; OCP Microscaling Formats 1.0).
type format struct {
	exp, man int
	bias     int
	largest  uint8 // encoding of the largest number
	inf      uint8 // encoding of larger numbers without saturation
	nan      uint8 // encoding of NaN, without the sign
	unsigned bool  // neither zero nor NaN has a sign: that encoding is NaN
}

// formats holds the signed float types. Those of 6 and 4 bits have neither Inf nor NaN: NaN becomes -0, as in
// ml_dtypes.
var formats = map[ir.DType]format{
	ir.Float8E4M3FN:   {exp: 4, man: 3, bias: 7, largest: 0x7e, inf: 0x7f, nan: 0x7f},
	ir.Float8E4M3FNUZ: {exp: 4, man: 3, bias: 8, largest: 0x7f, inf: 0x80, nan: 0x80, unsigned: true},
	ir.Float8E5M2:     {exp: 5, man: 2, bias: 15, largest: 0x7b, inf: 0x7c, nan: 0x7e},
	ir.Float8E5M2FNUZ: {exp: 5, man: 2, bias: 16, largest: 0x7f, inf: 0x80, nan: 0x80, unsigned: true},
	ir.Float6E2M3:     {exp: 2, man: 3, bias: 1, largest: 0x1f, inf: 0x1f, nan: 0x20},
	ir.Float6E3M2:     {exp: 3, man: 2, bias: 3, largest: 0x1f, inf: 0x1f, nan: 0x20},
	ir.Float4E2M1:     {exp: 2, man: 1, bias: 1, largest: 0x7, inf: 0x7, nan: 0x8},
}

// IsFloat reports whether DecodeFloats and EncodeFloats support dt.
func IsFloat(dt ir.DType) bool {
	_, ok := formats[dt]
	return ok || dt == ir.Float8E8M0
}

// A Rounding defines how unrepresentable numbers are encoded.
type Rounding struct {
	Saturate bool   // larger numbers become the largest finite one, not Inf or NaN
	InfIsNaN bool   // for the FNUZ types, even if Saturate is set: ONNX Cast below opset 24
	Mode     string // of float8e8m0: up (the default), down or nearest
}

// DecodeFloats writes the value of each of len(dst) elements of type dt, exactly. x holds them packed.
func DecodeFloats(dst []float32, x []byte, dt ir.DType) {
	table := make([]float32, 1<<dt.Bits())
	for code := range table {
		table[code] = decode(dt, uint8(code))
	}
	if dt.Bits() == 8 {
		for i := range dst {
			dst[i] = table[x[i]]
		}
		return
	}
	unpack(dst, x, int(dt.Bits()), func(code uint8) float32 { return table[code] })
}

// EncodeFloats writes x as elements of type dt, packed: rounded to nearest, half to even, unless r specifies otherwise.
func EncodeFloats(dst []byte, x []float32, dt ir.DType, r Rounding) {
	if dt == ir.Float8E8M0 {
		for i, v := range x {
			dst[i] = encodeScale(v, r)
		}
		return
	}
	f := formats[dt]
	if dt.Bits() == 8 {
		for i, v := range x {
			dst[i] = f.encode(v, r)
		}
		return
	}
	pack(dst, x, int(dt.Bits()), func(v float32) uint8 { return f.encode(v, r) })
}

func decode(dt ir.DType, code uint8) float32 {
	if dt == ir.Float8E8M0 {
		if code == scaleNaN {
			return float32(math.NaN())
		}
		return float32(math.Ldexp(1, int(code)-scaleBias))
	}
	return formats[dt].decode(code)
}

func (f format) sign() uint8 { return 1 << (f.exp + f.man) }

func (f format) decode(code uint8) float32 {
	magnitude := code &^ f.sign()
	switch {
	case f.unsigned && code == f.nan:
		return float32(math.NaN())
	case magnitude > f.largest && magnitude == f.inf && f.inf != f.nan:
		return float32(math.Inf(1 - 2*int(code/f.sign())))
	case magnitude > f.largest:
		return float32(math.NaN())
	}
	e, m := int(magnitude>>f.man), int(magnitude&(1<<f.man-1))
	// Subnormal numbers have the exponent of the smallest normal ones, and no implied bit.
	if e == 0 {
		e = 1
	} else {
		m += 1 << f.man
	}
	v := math.Ldexp(float64(m), e-f.bias-f.man)
	if code&f.sign() != 0 {
		v = -v
	}
	return float32(v)
}

func (f format) encode(v float32, r Rounding) uint8 {
	sign := uint8(0)
	if math.Signbit(float64(v)) {
		sign = f.sign()
	}
	switch a := math.Abs(float64(v)); {
	case v != v:
		return f.nan | sign
	case math.IsInf(a, 0):
		return f.beyond(sign, r.Saturate && !(r.InfIsNaN && f.unsigned))
	default:
		return f.round(a, sign, r.Saturate)
	}
}

// round encodes the finite a. A carry out of the fraction correctly increments the exponent.
func (f format) round(a float64, sign uint8, saturate bool) uint8 {
	e := max(int(math.Float64bits(a)>>52)-1023, 1-f.bias)
	// The scaling is exact, so that this is the only rounding. Below the normal numbers the unit is that of the
	// subnormal ones.
	units := math.RoundToEven(a * powerOfTwo(f.man-e))
	code := int((e+f.bias-1)<<f.man) + int(units)
	switch {
	case code > int(f.largest):
		return f.beyond(sign, saturate || f.inf == f.largest)
	case code == 0 && f.unsigned:
		return 0
	}
	return uint8(code) | sign
}

// powerOfTwo is 2^e for exponents of normal numbers, which those of a float32 are.
func powerOfTwo(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }

func (f format) beyond(sign uint8, saturate bool) uint8 {
	if saturate {
		return f.largest | sign
	}
	return f.inf | sign
}

// float8e8m0 is a power of two, used for scales.
const (
	scaleBias    = 127
	scaleNaN     = 0xff
	scaleLargest = 0xfe
)

// encodeScale encodes the magnitude of v: the handling of its sign is unspecified.
func encodeScale(v float32, r Rounding) uint8 {
	if v != v {
		return scaleNaN
	}
	// The fraction is in [½, 1): a power of two has ½, and an exponent that is greater by one.
	frac, e := math.Frexp(math.Abs(float64(v)))
	e += scaleBias - 1
	switch {
	case math.IsInf(float64(v), 0):
		e = scaleLargest + 1
	case frac == 0:
		e = -1
	case r.Mode == "nearest" && frac >= 0.75, r.Mode != "nearest" && r.Mode != "down" && frac > 0.5:
		e++
	}
	switch {
	case 0 <= e && e <= scaleLargest:
		return uint8(e)
	case !r.Saturate:
		return scaleNaN
	case e < 0:
		return 0
	}
	return scaleLargest
}
