package kernel

import "math"

// A SmallFloat is a float format of at most 8 bits: a sign, an exponent and a fraction, with subnormals (OCP 8-bit
// Floating Point Specification 1.0, OCP Microscaling Formats 1.0).
type SmallFloat struct {
	fraction uint32 // number of bits
	bias     uint32
	sign     byte
	largest  byte // encoding of the largest number
	values   *[256]float32
}

// The formats of weights, by ONNX's "Float stored in 8 bits" and "Float stored in 4 bits".
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
func (f SmallFloat) Largest() float32 { return f.values[f.largest] }

// Ends are the encodings of the smallest and the largest number.
func (f SmallFloat) Ends() (low, high byte) { return f.largest | f.sign, f.largest }

// HalfSpacing is half the distance of neighbouring numbers: relative to the smaller one, and absolute between subnormal
// ones.
func (f SmallFloat) HalfSpacing() (relative, absolute float32) {
	return float32(math.Ldexp(1, -int(f.fraction)-1)), f.values[1] / 2
}

// Encode writes the encoding of each x/scale, one per byte: rounded to nearest, half to even, saturated. x must not
// contain NaN.
func (f SmallFloat) Encode(dst []byte, x []float32, scale float32) {
	checkLen("dst", len(dst), len(x))
	n := f.codesBulk(dst, x, scale)
	for i, v := range x[n:] {
		dst[n+i] = f.encode(v / scale)
	}
}

// EncodeCols is Encode on whole rows of len(scale) columns, each column with its own scale.
func (f SmallFloat) EncodeCols(dst []byte, x, scale []float32) {
	checkLen("dst", len(dst), len(x))
	checkRows(len(x), len(scale))
	done := f.codesColsBulk(dst, x, scale)
	for at := 0; at < len(x); at += len(scale) {
		for j := done; j < len(scale); j++ {
			dst[at+j] = f.encode(x[at+j] / scale[j])
		}
	}
}

// encode is the encoding of one number.
func (f SmallFloat) encode(v float32) byte {
	b := math.Float32bits(v)
	m, sign := b&magnitude, byte(b>>31)*f.sign
	if m < f.normal() {
		// The sum with this number, whose last place is the smallest subnormal, is rounded to multiples of it by the
		// addition.
		unit := f.unit()
		m = math.Float32bits(math.Float32frombits(m)+math.Float32frombits(unit)) - unit
	} else {
		// Half of the last place less one and one more if it is odd, as in bf16Bits; the bias is in the same sum.
		m = (m + f.round() + m>>f.drop()&1) >> f.drop()
	}
	return byte(min(m, uint32(f.largest))) | sign
}

// drop is the number of bits of float32's fraction that the format does not have.
func (f SmallFloat) drop() uint32 { return 23 - f.fraction }

// normal is the bits of the smallest normal number.
func (f SmallFloat) normal() uint32 { return (128 - f.bias) << 23 }

// unit is the bits of the number whose last place is the smallest subnormal.
func (f SmallFloat) unit() uint32 { return (128 - f.bias + f.drop()) << 23 }

// round replaces float32's bias by the format's, and rounds to nearest at drop bits.
func (f SmallFloat) round() uint32 { return 1<<(f.drop()-1) - 1 - (127-f.bias)<<23 }

// BlockErrors are the sums of squared quantization errors of each column of x, rows of BlockCols, with its own scale.
func (f SmallFloat) BlockErrors(x []float32, scale *[BlockCols]float32) (sums [BlockCols]float32) {
	checkRows(len(x), BlockCols)
	if f.errorsBulk(&sums, x, scale) {
		return sums
	}
	for i, v := range x {
		v = float32(math.Abs(float64(v)))
		d := v - float32(f.nearest(v/scale[i%BlockCols])*scale[i%BlockCols])
		sums[i%BlockCols] += float32(d * d)
	}
	return sums
}

// nearest is the number of the format nearest to v, which is not negative: the sum with a number whose last place is
// the format's at that magnitude is rounded to it by the addition.
func (f SmallFloat) nearest(v float32) float32 {
	v = min(v, f.Largest())
	by := math.Float32frombits(max(math.Float32bits(v), f.normal())&f32Inf + f.drop()<<23)
	return (v + by) - by
}

// Decode writes the numbers of encoded values, one per byte, times scale.
func (f SmallFloat) Decode(dst []float32, codes []byte, scale float32) {
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
