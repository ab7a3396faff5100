package train

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
)

// The functions of this file are kernels in single precision, and loops in double precision, which only tests need.

// logSoftmax writes the natural logarithm of the softmax of x.
func logSoftmax[T number](dst, x []T) {
	if x, ok := any(x).([]float32); ok {
		kernel.LogSoftmax(any(dst).([]float32), x)
		return
	}
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, float64(v))
	}
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	rest := math.Log(sum)
	for i, v := range x {
		dst[i] = T(float64(v) - top - rest)
	}
}

// exp writes e to the power of x.
func exp[T number](dst, x []T) {
	if x, ok := any(x).([]float32); ok {
		kernel.Exp(any(dst).([]float32), x)
		return
	}
	for i, v := range x {
		dst[i] = T(math.Exp(float64(v)))
	}
}

// scaleShift writes x·scale + shift.
func scaleShift[T number](dst, x []T, scale, shift float64) {
	if x, ok := any(x).([]float32); ok {
		kernel.ScaleShift(any(dst).([]float32), x, float32(scale), float32(shift))
		return
	}
	for i, v := range x {
		dst[i] = T(float64(float64(v)*scale) + shift)
	}
}

// sub writes a - b.
func sub[T number](dst, a, b []T) {
	if a, ok := any(a).([]float32); ok {
		kernel.Sub(any(dst).([]float32), a, any(b).([]float32))
		return
	}
	for i, v := range a {
		dst[i] = v - b[i]
	}
}
