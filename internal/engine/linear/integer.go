package linear

import "github.com/mcompress/mcompress/ir"

// isInteger reports whether dt is an integer type of 8 bits or more.
func isInteger(dt ir.DType) bool {
	switch dt {
	case ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return true
	}
	return false
}

func widenInteger(dst []uint64, a *ir.Array) {
	switch a.DType {
	case ir.Int8:
		convert(dst, ir.View[int8](a))
	case ir.Int16:
		convert(dst, ir.View[int16](a))
	case ir.Int32:
		convert(dst, ir.View[int32](a))
	case ir.Uint8:
		convert(dst, ir.View[uint8](a))
	case ir.Uint16:
		convert(dst, ir.View[uint16](a))
	case ir.Uint32:
		convert(dst, ir.View[uint32](a))
	}
}

func narrowInteger(a *ir.Array, x []uint64) {
	switch a.DType {
	case ir.Int8:
		convert(ir.View[int8](a), x)
	case ir.Int16:
		convert(ir.View[int16](a), x)
	case ir.Int32:
		convert(ir.View[int32](a), x)
	case ir.Uint8:
		convert(ir.View[uint8](a), x)
	case ir.Uint16:
		convert(ir.View[uint16](a), x)
	case ir.Uint32:
		convert(ir.View[uint32](a), x)
	}
}

type integer interface {
	int8 | int16 | int32 | uint8 | uint16 | uint32 | uint64
}

// convert keeps signs, and the low bits.
func convert[D, S integer](dst []D, src []S) {
	for i, x := range src {
		dst[i] = D(x)
	}
}
