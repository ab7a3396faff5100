package linear

import "github.com/mcompress/mcompress/ir"

// integers are the integer types of 8 bits or more.
var integers = map[ir.DType]integerType{
	ir.Int8: integerOf[int8](), ir.Int16: integerOf[int16](), ir.Int32: integerOf[int32](),
	ir.Int64: integerOf[int64](),
	ir.Uint8: integerOf[uint8](), ir.Uint16: integerOf[uint16](), ir.Uint32: integerOf[uint32](),
	ir.Uint64: integerOf[uint64](),
}

// An integerType converts tensors to and from uint64, keeping signs and the low bits.
type integerType struct {
	widen  func(dst []uint64, a *ir.Array)
	narrow func(a *ir.Array, x []uint64)
}

func integerOf[T interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
	ir.Element
}]() integerType {
	return integerType{
		widen: func(dst []uint64, a *ir.Array) {
			for i, x := range ir.View[T](a) {
				dst[i] = uint64(x)
			}
		},
		narrow: func(a *ir.Array, x []uint64) {
			dst := ir.View[T](a)
			for i, v := range x {
				dst[i] = T(v)
			}
		},
	}
}

func isInteger(dt ir.DType) bool { return integers[dt].widen != nil }
