package quant

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// ranges are the ranges of the quantized integer types.
var ranges = map[ir.DType]struct{ lo, hi int32 }{
	ir.Int8: {-128, 127}, ir.Uint8: {0, 255},
	ir.Int16: {-32768, 32767}, ir.Uint16: {0, 65535},
	ir.Int4: {-8, 7}, ir.Uint4: {0, 15},
	ir.Int2: {-2, 1}, ir.Uint2: {0, 3},
}

// isByte reports whether dt is a type of integer products.
func isByte(dt ir.DType) bool { return dt == ir.Int8 || dt == ir.Uint8 }

// rangeOfType is the range of an integer type of at most 8 bits, for package kernel.
func rangeOfType(dt ir.DType) kernel.IntRange {
	r := ranges[dt]
	return kernel.IntRange{Lo: r.lo, Hi: r.hi}
}

// integers are the elements of a quantized or int32 tensor.
func integers(a *ir.Array) ([]int32, error) {
	if !op.IsKnown(a) {
		return nil, op.ErrUnknown
	}
	to := make([]int32, a.Elems())
	switch a.DType {
	case ir.Int8:
		convert(to, ir.View[int8](a))
	case ir.Uint8:
		convert(to, ir.View[uint8](a))
	case ir.Int16:
		convert(to, ir.View[int16](a))
	case ir.Uint16:
		convert(to, ir.View[uint16](a))
	case ir.Int32:
		convert(to, ir.View[int32](a))
	case ir.Int4, ir.Int2:
		b := make([]byte, len(to))
		narrow.DecodeInts(b, a.Data, a.DType)
		for i, v := range b {
			to[i] = int32(int8(v))
		}
	case ir.Uint4, ir.Uint2:
		b := make([]byte, len(to))
		narrow.DecodeInts(b, a.Data, a.DType)
		convert(to, b)
	default:
		return nil, fmt.Errorf("data type is %s, want a quantized type or int32", a)
	}
	return to, nil
}

func convert[T int8 | uint8 | int16 | uint16 | int32](to []int32, x []T) {
	for i, v := range x {
		to[i] = int32(v)
	}
}

// isScale reports whether floats and readFloats support dt.
func isScale(dt ir.DType) bool {
	return dt == ir.Float || dt == ir.Float16 || dt == ir.BFloat16 || dt == ir.Int32 || narrow.IsFloat(dt)
}

// floats are the elements of a tensor of scales.
func floats(a *ir.Array) ([]float32, error) {
	if !op.IsKnown(a) {
		return nil, op.ErrUnknown
	}
	if a.DType == ir.Float {
		return ir.View[float32](a), nil
	}
	to := make([]float32, a.Elems())
	readFloats(to, a, 0)
	return to, nil
}

// readFloats writes the elements of a, starting at from, to dst; exact for all types but int32.
func readFloats(dst []float32, a *ir.Array, from int) {
	to := from + len(dst)
	switch a.DType {
	case ir.Float:
		copy(dst, ir.View[float32](a)[from:to])
	case ir.Float16:
		kernel.F32FromF16(dst, ir.View[uint16](a)[from:to])
	case ir.BFloat16:
		kernel.F32FromBF16(dst, ir.View[uint16](a)[from:to])
	case ir.Int32:
		for i, v := range ir.View[int32](a)[from:to] {
			dst[i] = float32(v)
		}
	default:
		narrow.DecodeFloats(dst, a.Data[int64(from)*a.DType.Bits()/8:], a.DType)
	}
}

// rounded rounds each element to a float type.
func rounded(x []float32, dt ir.DType) {
	if dt != ir.Float16 && dt != ir.BFloat16 {
		return
	}
	half := make([]uint16, len(x))
	switch dt {
	case ir.Float16:
		kernel.F16FromF32(half, x)
		kernel.F32FromF16(x, half)
	case ir.BFloat16:
		kernel.BF16FromF32(half, x)
		kernel.F32FromBF16(x, half)
	}
}
