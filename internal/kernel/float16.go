package kernel

import "github.com/x448/float16"

// F16FromF32 converts x to IEEE binary16 bits, rounded to nearest, half to even. Values out of range become Inf; a NaN
// keeps the top bits of its payload and is made quiet. The bulk loop equals package float16, which converts the rest,
// on every bit pattern.
func F16FromF32(dst []uint16, x []float32) {
	checkLen("dst", len(dst), len(x))
	n := f16FromF32Bulk(dst, x)
	f16FromF32Go(dst[n:], x[n:])
}

// F32FromF16 converts IEEE binary16 bits to float32, exactly. A NaN keeps its payload and is made quiet.
func F32FromF16(dst []float32, x []uint16) {
	checkLen("dst", len(dst), len(x))
	n := f32FromF16Bulk(dst, x)
	f32FromF16Go(dst[n:], x[n:])
}

func f16FromF32Go(dst []uint16, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float16.Fromfloat32(v).Bits()
	}
}

func f32FromF16Go(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, h := range x {
		dst[i] = float16.Frombits(h).Float32()
	}
}
