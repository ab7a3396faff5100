package kernel

import "math"

// magnitude masks the sign off the bits of a float32. Magnitudes are ordered like integers: zero, subnormal, normal,
// Inf (0x7f800000), NaN.
const magnitude = 0x7fffffff

// AbsMaxBits returns the largest magnitude in x as float32 bits, 0 for an empty x. A result of 0x7f800000 means Inf and
// no NaN, a larger one NaN.
func AbsMaxBits(x []float32) uint32 {
	n, top := absMaxBitsBulk(x)
	return max(top, absMaxBitsGo(x[n:]))
}

// ColAbsMaxBits raises acc[j] to the largest magnitude (see AbsMaxBits) of column j of x, which is whole rows of
// len(acc) columns. For several blocks of rows acc starts with zeros.
func ColAbsMaxBits(acc []uint32, x []float32) {
	checkRows(len(x), len(acc))
	done := colAbsMaxBitsBulk(acc, x)
	if done == len(acc) {
		return
	}
	for ; len(x) > 0; x = x[len(acc):] {
		colAbsMaxBitsGo(acc[done:], x[done:len(acc)])
	}
}

func absMaxBitsGo(x []float32) uint32 {
	var top uint32
	for _, v := range x {
		top = max(top, math.Float32bits(v)&magnitude)
	}
	return top
}

func colAbsMaxBitsGo(acc []uint32, row []float32) {
	row = row[:len(acc)]
	for j, v := range row {
		acc[j] = max(acc[j], math.Float32bits(v)&magnitude)
	}
}
