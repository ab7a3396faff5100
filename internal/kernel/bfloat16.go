package kernel

import "math"

// BF16FromF32 writes x as bfloat16 bits, rounded to nearest, half to even. Too large becomes
// Inf; a NaN stays one with the top bits of its payload, made quiet.
func BF16FromF32(dst []uint16, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := bf16FromF32Bulk(dst, x)
	bf16FromF32Go(dst[n:], x[n:])
}

// F32FromBF16 writes the value of each bfloat16 pattern of x, which is exact: the bits are the
// upper half of the float32's, those of a NaN too.
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
	if b&magnitude > f32Inf {
		const quiet = 0x40
		return uint16(b>>16) | quiet
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func f32FromBF16Go(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, h := range x {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}
