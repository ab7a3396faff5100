package block

import (
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Small are the integers that operators compute in 64 bits, so that a loop per type is not needed; false is 0 and true
// is 1.
const Small Set = 1<<ir.Int8 | 1<<ir.Int16 | 1<<ir.Int32 | 1<<ir.Uint8 | 1<<ir.Uint16 | 1<<ir.Uint32 | Bool

// Direct reports whether all operators compute on elements of type dt where they are stored, without buffers for
// converted ones.
func Direct(dt ir.DType) bool { return !(Halves | Small).Has(dt) }

// loading returns the function of type func(dst []T, at int) that reads elements of a from at on, for T the type of
// zero; nil if they are stored as T.
func loading(a *ir.Array, zero any) any {
	switch zero.(type) {
	case float32:
		switch a.DType {
		case ir.Float16:
			return widening(ir.View[uint16](a), kernel.F32FromF16)
		case ir.BFloat16:
			return widening(ir.View[uint16](a), kernel.F32FromBF16)
		}
	case float64:
		if a.DType != ir.Double {
			return func(dst []float64, at int) { number.Read(dst, a, at) }
		}
	case int64:
		switch a.DType {
		case ir.Int8:
			return reading[int64](ir.View[int8](a))
		case ir.Int16:
			return reading[int64](ir.View[int16](a))
		case ir.Int32:
			return reading[int64](ir.View[int32](a))
		}
	case uint64:
		switch a.DType {
		case ir.Uint8, ir.Bool:
			return reading[uint64](ir.View[uint8](a))
		case ir.Uint16:
			return reading[uint64](ir.View[uint16](a))
		case ir.Uint32:
			return reading[uint64](ir.View[uint32](a))
		}
	}
	return nil
}

// storing is the inverse of loading: it returns a function of type func(at int, x []T).
func storing(a *ir.Array, zero any) any {
	switch zero.(type) {
	case float32:
		switch a.DType {
		case ir.Float16:
			return narrowing(ir.View[uint16](a), kernel.F16FromF32)
		case ir.BFloat16:
			return narrowing(ir.View[uint16](a), kernel.BF16FromF32)
		}
	case float64:
		if a.DType != ir.Double {
			return func(at int, x []float64) { number.Write(a, at, x) }
		}
	case int64:
		switch a.DType {
		case ir.Int8:
			return writing[int64](ir.View[int8](a))
		case ir.Int16:
			return writing[int64](ir.View[int16](a))
		case ir.Int32:
			return writing[int64](ir.View[int32](a))
		}
	case uint64:
		switch a.DType {
		case ir.Uint8:
			return writing[uint64](ir.View[uint8](a))
		case ir.Uint16:
			return writing[uint64](ir.View[uint16](a))
		case ir.Uint32:
			return writing[uint64](ir.View[uint32](a))
		case ir.Bool:
			return truths(ir.View[bool](a))
		}
	}
	return nil
}

func widening(x []uint16, widen func(dst []float32, x []uint16)) func([]float32, int) {
	return func(dst []float32, at int) { widen(dst, x[at:at+len(dst)]) }
}

func narrowing(dst []uint16, narrow func(dst []uint16, x []float32)) func(int, []float32) {
	return func(at int, x []float32) { narrow(dst[at:at+len(x)], x) }
}

type integer interface {
	int8 | int16 | int32 | uint8 | uint16 | uint32
}

func reading[W int64 | uint64, N integer](x []N) func([]W, int) {
	return func(dst []W, at int) {
		from := x[at:][:len(dst)]
		for i := range dst {
			dst[i] = W(from[i])
		}
	}
}

func writing[W int64 | uint64, N integer](dst []N) func(int, []W) {
	return func(at int, x []W) {
		to := dst[at:][:len(x)]
		for i, v := range x {
			to[i] = N(v)
		}
	}
}

func truths(dst []bool) func(int, []uint64) {
	return func(at int, x []uint64) {
		to := dst[at:][:len(x)]
		for i, v := range x {
			to[i] = v != 0
		}
	}
}
