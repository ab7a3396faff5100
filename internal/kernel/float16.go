package kernel

import "math"

// F16FromF32 writes x as IEEE binary16 bits, rounded to nearest, half to even. Too large
// becomes Inf; a NaN stays one with the top bits of its payload, made quiet. Equal to
// x448/float16 Fromfloat32 and to the F16C instruction on every pattern.
func F16FromF32(dst []uint16, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := f16FromF32Bulk(dst, x)
	f16FromF32Go(dst[n:], x[n:])
}

// F32FromF16 writes the value of each IEEE binary16 pattern of x, which is exact. A NaN keeps
// its payload and is made quiet.
func F32FromF16(dst []float32, x []uint16) {
	checkLen("dst", len(dst), len(x))
	n := f32FromF16Bulk(dst, x)
	f32FromF16Go(dst[n:], x[n:])
}

func f16FromF32Go(dst []uint16, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = f16Bits(math.Float32bits(v))
	}
}

func f32FromF16Go(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, h := range x {
		dst[i] = math.Float32frombits(f32Bits(uint32(h)))
	}
}

const (
	f32Inf       = 0x7f800000
	f16Inf       = 0x7c00
	f16Quiet     = 0x0200
	f16Overflow  = 0x47800000 // 2^16; from 65520 up the carry of rounding reaches Inf too
	f16MinNormal = 0x38800000 // 2^-14
	f16Rebias    = 112 << 23  // 127-15, the difference of the exponent biases
)

func f16Bits(b uint32) uint16 {
	sign, m := uint16(b>>16&0x8000), b&magnitude
	switch {
	case m > f32Inf:
		return sign | f16Inf | f16Quiet | uint16(m>>13&0x3ff)
	case m >= f16Overflow:
		return sign | f16Inf
	case m < f16MinNormal:
		return sign | f16Subnormal(m)
	}
	// A carry out of the fraction runs into the exponent, up to Inf, as it should.
	return sign | uint16((m-f16Rebias+0xfff+m>>13&1)>>13)
}

// f16Subnormal rounds magnitudes below 2^-14 to multiples of 2^-24, the smallest binary16: the
// sum with 0.5, whose last place is 2^-24, is rounded so by the addition.
func f16Subnormal(m uint32) uint16 {
	const half = 0x3f000000
	sum := math.Float32frombits(m) + 0.5
	return uint16(math.Float32bits(sum) - half)
}

func f32Bits(h uint32) uint32 {
	sign, m := h&0x8000<<16, h&0x7fff
	switch {
	case m > f16Inf:
		return sign | f32Inf | 0x400000 | m&0x3ff<<13
	case m == f16Inf:
		return sign | f32Inf
	case m < 0x400:
		// A subnormal is that many times 2^-24: exact in float32, normal or zero.
		return sign | math.Float32bits(float32(m)*0x1p-24)
	}
	return sign | (m<<13 + f16Rebias)
}
