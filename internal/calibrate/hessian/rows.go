package hessian

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Rows are the elements of a as rows of k, false if its last axis has another size or its type is neither float32 nor
// float16.
func Rows(a *ir.Array, k int) ([]float32, bool) {
	n := len(a.Shape)
	if a.Kind != ir.Dense || n == 0 || a.Shape[n-1] != int64(k) {
		return nil, false
	}
	return Floats(a)
}

// Floats are the elements of a in float32, false if its type is neither float32 nor float16.
func Floats(a *ir.Array) ([]float32, bool) {
	switch a.DType {
	case ir.Float:
		return ir.View[float32](a), true
	case ir.Float16:
		x := make([]float32, a.Elems())
		kernel.F32FromF16(x, ir.View[uint16](a))
		return x, true
	}
	return nil, false
}
