package conv

import (
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
)

type float interface{ float32 | float64 }

type whole interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// A scratch hands out parts of Call.Work.
type scratch[F float] []byte

func (s *scratch[F]) take(n int) []F {
	size := int64(n) * elementSize[F]()
	xs := kernel.Words[F]((*s)[:size])
	*s = (*s)[aligned(size):]
	return xs
}

func elementSize[F float]() int64 {
	if isFloat32[F]() {
		return 4
	}
	return 8
}

func isFloat32[F float]() bool {
	_, ok := any(F(0)).(float32)
	return ok
}

// direct are a's elements if they are F, else nil.
func direct[F float](a *ir.Array) []F {
	if isFloat32[F]() && a.DType == ir.Float || !isFloat32[F]() && a.DType == ir.Double {
		return ir.View[F](a)
	}
	return nil
}

// isNumber reports whether load and store know the type.
func isNumber(dt ir.DType) bool {
	switch dt {
	case ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Bool,
		ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return true
	}
	return false
}

// load writes a's elements as floats; 16-bit floats only as float32.
func load[F float](to []F, a *ir.Array) {
	switch a.DType {
	case ir.Float16, ir.BFloat16:
		widen(any(to).([]float32), a)
	case ir.Float, ir.Double:
		copy(to, direct[F](a))
	case ir.Int8:
		convert(to, ir.View[int8](a))
	case ir.Int16:
		convert(to, ir.View[int16](a))
	case ir.Int32:
		convert(to, ir.View[int32](a))
	case ir.Int64:
		convert(to, ir.View[int64](a))
	case ir.Uint8, ir.Bool:
		convert(to, ir.View[uint8](a))
	case ir.Uint16:
		convert(to, ir.View[uint16](a))
	case ir.Uint32:
		convert(to, ir.View[uint32](a))
	case ir.Uint64:
		convert(to, ir.View[uint64](a))
	}
}

func convert[F float, T whole](to []F, x []T) {
	for i, v := range x {
		to[i] = F(v)
	}
}

// store writes floats as a's type: integers lose their fraction, and are saturated.
func store[F float](a *ir.Array, x []F) {
	switch a.DType {
	case ir.Float16, ir.BFloat16:
		narrow(a, any(x).([]float32))
	case ir.Float, ir.Double:
		copy(direct[F](a), x)
	case ir.Int8:
		truncate(ir.View[int8](a), x, math.MinInt8, math.MaxInt8)
	case ir.Int16:
		truncate(ir.View[int16](a), x, math.MinInt16, math.MaxInt16)
	case ir.Int32:
		truncate(ir.View[int32](a), x, math.MinInt32, math.MaxInt32)
	case ir.Int64:
		truncate(ir.View[int64](a), x, math.MinInt64, math.MaxInt64)
	case ir.Uint8:
		truncate(ir.View[uint8](a), x, 0, math.MaxUint8)
	case ir.Uint16:
		truncate(ir.View[uint16](a), x, 0, math.MaxUint16)
	case ir.Uint32:
		truncate(ir.View[uint32](a), x, 0, math.MaxUint32)
	case ir.Uint64:
		truncate(ir.View[uint64](a), x, 0, math.MaxUint64)
	case ir.Bool:
		for i, v := range x {
			ir.View[bool](a)[i] = v != 0
		}
	}
}

// truncate takes NaN for 0.
func truncate[T whole, F float](to []T, x []F, lo, hi T) {
	for i, v := range x {
		switch {
		case v >= F(hi):
			to[i] = hi
		case v <= F(lo):
			to[i] = lo
		case v == v:
			to[i] = T(v)
		default:
			to[i] = 0
		}
	}
}
