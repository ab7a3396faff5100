package kernel

import "math"

// BF16FromF32 converts x to bfloat16 bits, rounded to nearest, half to even. Values out of range become Inf; a NaN
// keeps the top bits of its payload and is made quiet.
func BF16FromF32(dst []uint16, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := bf16FromF32Bulk(dst, x)
	bf16FromF32Go(dst[n:], x[n:])
}

// F32FromBF16 converts bfloat16 bits to float32, exactly: the bits are the upper half of the float32's, also for NaN.
func F32FromBF16(dst []float32, x []uint16) {
	checkLen("dst", len(dst), len(x))
	n := f32FromBF16Bulk(dst, x)
	f32FromBF16Go(dst[n:], x[n:])
}

func bf16FromF32Go(dst []uint16, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = bf16Bits(math.Float32bits(v))
	}
}

// f32Inf is the bits of +Inf.
const f32Inf = 0x7f800000

func bf16Bits(b uint32) uint16 {
	// The bits that are cut may be all that distinguishes a NaN from Inf.
	if b&magnitude > f32Inf {
		const quiet = 0x40
		return uint16(b>>16) | quiet
	}
	// Half of the last place less one, and one more if the last place is odd: halves are rounded to even. A carry goes
	// into the exponent, up to Inf.
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func f32FromBF16Go(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, h := range x {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}
