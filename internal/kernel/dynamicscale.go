package kernel

// DynamicScale returns the uint8 scale and zero point that ONNX DynamicQuantizeLinear computes for elements from lo to
// hi. If the range overflows or is NaN, scale is not finite. The scale of all zeros is 1, as in ONNX Runtime; the
// specification does not define it.
func DynamicScale(lo, hi float32) (scale float32, zero uint8) {
	lo, hi = min(lo, 0), max(hi, 0)
	if lo == hi {
		return 1, 0
	}
	scale = (hi - lo) / 255
	return scale, IntRange{0, 255}.quantize(-lo/scale, 0)
}
