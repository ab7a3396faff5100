package kernel

// DynamicQuantize writes x as uint8 codes with the scale and zero point that ONNX
// DynamicQuantizeLinear takes from its range, and returns them. Where the range overflows or x
// holds a NaN, scale is not finite and codes mean nothing.
func DynamicQuantize(dst []byte, x []float32) (scale float32, zero uint8) {
	checkLen("dst", len(dst), len(x))
	if len(x) == 0 {
		return DynamicScale(0, 0)
	}
	scale, zero = DynamicScale(MinMax(x))
	Quantize(dst, x, scale, int32(zero), Codes{0, 255})
	return scale, zero
}

// DynamicScale returns the scale and zero point of DynamicQuantize for elements from lo to hi: for
// callers that find the range of pieces, and Quantize pieces then. Zeros alone have scale 1, as
// ONNX Runtime gives them; the formula of the specification has no answer.
func DynamicScale(lo, hi float32) (scale float32, zero uint8) {
	lo, hi = min(lo, 0), max(hi, 0)
	if lo == hi {
		return 1, 0
	}
	scale = (hi - lo) / 255
	return scale, Codes{0, 255}.code(-lo/scale, 0)
}
