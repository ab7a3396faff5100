package kernel

// DynamicQuantize quantizes x to uint8 with the scale and zero point that ONNX DynamicQuantizeLinear computes from its range, and returns
// them. If the range overflows or x contains NaN, scale is not finite and the quantized values are undefined.
func DynamicQuantize(dst []byte, x []float32) (scale float32, zero uint8) {
	checkLen("dst", len(dst), len(x))
	if len(x) == 0 {
		return DynamicScale(0, 0)
	}
	scale, zero = DynamicScale(MinMax(x))
	Quantize(dst, x, scale, int32(zero), IntRange{0, 255})
	return scale, zero
}

// DynamicScale returns the scale and zero point of DynamicQuantize for elements from lo to hi: for callers that compute ranges of pieces,
// and then quantize pieces. The scale of all zeros is 1, as in ONNX Runtime; the specification does not define it.
func DynamicScale(lo, hi float32) (scale float32, zero uint8) {
	lo, hi = min(lo, 0), max(hi, 0)
	if lo == hi {
		return 1, 0
	}
	scale = (hi - lo) / 255
	return scale, IntRange{0, 255}.quantize(-lo/scale, 0)
}
