package kernel

import "math"

// MinMax returns the minimum and the maximum of x, with -0 < +0 so that the result does not depend on the order of
// elements. x must not be empty. Callers reject NaN and Inf with AbsMaxBits; here NaN is beyond the Inf of its sign.
func MinMax(x []float32) (lo, hi float32) {
	if len(x) == 0 {
		panic("kernel: MinMax of an empty slice")
	}
	n, low, high := minMaxBulk(x)
	low, high = minMaxGo(low, high, x[n:])
	return fromOrdered(low), fromOrdered(high)
}

// ColMinMax lowers lo[j] and raises hi[j] to the minimum and the maximum of column j of x, which is whole rows of
// len(lo) columns. For several blocks of rows lo starts with +Inf and hi with -Inf. The order is MinMax's.
func ColMinMax(lo, hi []float32, x []float32) {
	checkLen("hi", len(hi), len(lo))
	checkRows(len(x), len(lo))
	done := colMinMaxBulk(lo, hi, x)
	if done == len(lo) {
		return
	}
	for ; len(x) > 0; x = x[len(lo):] {
		colMinMaxGo(lo[done:], hi[done:], x[done:len(lo)])
	}
}

// ordered maps float32 bits to integers of the same order: negative numbers get their magnitude inverted. It is its own
// inverse.
func ordered(v float32) int32 {
	b := int32(math.Float32bits(v))
	return b ^ (b >> 31 & magnitude)
}

func fromOrdered(b int32) float32 {
	return math.Float32frombits(uint32(b ^ (b >> 31 & magnitude)))
}

func minMaxGo(lo, hi int32, x []float32) (int32, int32) {
	for _, v := range x {
		o := ordered(v)
		lo, hi = min(lo, o), max(hi, o)
	}
	return lo, hi
}

func colMinMaxGo(lo, hi, row []float32) {
	hi, row = hi[:len(lo)], row[:len(lo)]
	for j, v := range row {
		o := ordered(v)
		lo[j] = fromOrdered(min(ordered(lo[j]), o))
		hi[j] = fromOrdered(max(ordered(hi[j]), o))
	}
}
