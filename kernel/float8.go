package kernel

import "math"

// A SmallFloat is a float of at most 8 bits: a sign, an exponent and a fraction, with subnormals (OCP 8-bit Floating Point Specification
// 1.0, OCP Microscaling Formats 1.0).
type SmallFloat struct {
	fraction uint32 // bits of it
	bias     uint32
	sign     byte
	largest  byte // code of the largest number
	values   *[256]float32
}

// The formats of weights. What their codes mean is ONNX's "Float stored in 8 bits" and "Float stored in 4 bits".
var (
	E4M3FN = newSmallFloat(3, 7, 0x80, 0x7e)
	E5M2   = newSmallFloat(2, 15, 0x80, 0x7b)
)

func newSmallFloat(fraction, bias uint32, sign, largest byte) SmallFloat {
	f := SmallFloat{fraction: fraction, bias: bias, sign: sign, largest: largest, values: new([256]float32)}
	for c := range int(sign) * 2 {
		f.values[c] = f.value(byte(c))
	}
	return f
}

// Largest is the largest number of the format.
func (f SmallFloat) Largest() float32 { return f.value(f.largest) }

// Codes writes the code of each x/scale, one a byte: rounded to nearest, half to even; what is beyond the largest number becomes it.
// x must not hold NaN.
func (f SmallFloat) Codes(dst []byte, x []float32, scale float32) {
	checkLen("dst", len(dst), len(x))
	dst = dst[:len(x)]
	drop := 23 - f.fraction
	rebias := (127 - f.bias) << 23
	normal := (128 - f.bias) << 23 // bits of the smallest normal number
	// The sum with this number, whose last place is the smallest subnormal, is rounded to multiples of it by the addition.
	unit := math.Float32frombits((127 - f.bias + 1 + drop) << 23)
	for i, v := range x {
		b := math.Float32bits(v / scale)
		m, sign := b&magnitude, byte(b>>24)&0x80/(0x80/f.sign)
		var code uint32
		if m < normal {
			code = math.Float32bits(math.Float32frombits(m)+unit) - math.Float32bits(unit)
		} else {
			code = (m - rebias + 1<<(drop-1) - 1 + m>>drop&1) >> drop
		}
		dst[i] = byte(min(code, uint32(f.largest))) | sign
	}
}

// Values writes the numbers of codes, one a byte, times scale.
func (f SmallFloat) Values(dst []float32, codes []byte, scale float32) {
	checkLen("dst", len(dst), len(codes))
	dst = dst[:len(codes)]
	for i, c := range codes {
		dst[i] = f.values[c] * scale
	}
}

func (f SmallFloat) value(code byte) float32 {
	m := uint32(code &^ f.sign)
	e, frac := m>>f.fraction, m&(1<<f.fraction-1)
	v := math.Ldexp(float64(frac), 1-int(f.bias+f.fraction))
	if e > 0 {
		v = math.Ldexp(float64(frac+1<<f.fraction), int(e)-int(f.bias+f.fraction))
	}
	if code&f.sign != 0 {
		v = -v
	}
	return float32(v)
}
