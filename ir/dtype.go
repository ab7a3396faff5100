package ir

import (
	"fmt"
	"math"
)

// A DType is an element type, numbered as ONNX's TensorProto.DataType.
type DType uint8

// The element types of ONNX IR version 14.
const (
	Undefined DType = iota
	Float
	Uint8
	Int8
	Uint16
	Int16
	Int32
	Int64
	String
	Bool
	Float16
	Double
	Uint32
	Uint64
	Complex64
	Complex128
	BFloat16
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Uint4
	Int4
	Float4E2M1
	Float8E8M0
	Uint2
	Int2
	Float6E2M3
	Float6E3M2
)

// dtypes has the name of each type in ONNX's text syntax and its width in bits.
// Strings have no width: their payload is never opened as bytes.
var dtypes = [...]struct {
	name string
	bits int64
}{
	Undefined:      {"undefined", 0},
	Float:          {"float", 32},
	Uint8:          {"uint8", 8},
	Int8:           {"int8", 8},
	Uint16:         {"uint16", 16},
	Int16:          {"int16", 16},
	Int32:          {"int32", 32},
	Int64:          {"int64", 64},
	String:         {"string", 0},
	Bool:           {"bool", 8},
	Float16:        {"float16", 16},
	Double:         {"double", 64},
	Uint32:         {"uint32", 32},
	Uint64:         {"uint64", 64},
	Complex64:      {"complex64", 64},
	Complex128:     {"complex128", 128},
	BFloat16:       {"bfloat16", 16},
	Float8E4M3FN:   {"float8e4m3fn", 8},
	Float8E4M3FNUZ: {"float8e4m3fnuz", 8},
	Float8E5M2:     {"float8e5m2", 8},
	Float8E5M2FNUZ: {"float8e5m2fnuz", 8},
	Uint4:          {"uint4", 4},
	Int4:           {"int4", 4},
	Float4E2M1:     {"float4e2m1", 4},
	Float8E8M0:     {"float8e8m0", 8},
	Uint2:          {"uint2", 2},
	Int2:           {"int2", 2},
	Float6E2M3:     {"float6e2m3", 6},
	Float6E3M2:     {"float6e3m2", 6},
}

// Known reports whether d is a type of this IR version, Undefined excluded.
func (d DType) Known() bool { return d > Undefined && int(d) < len(dtypes) }

// Bits is the width of one element; 0 for strings and unknown types.
func (d DType) Bits() int64 {
	if !d.Known() {
		return 0
	}
	return dtypes[d].bits
}

// IsFloat reports whether d is one of the types weights are trained in.
func (d DType) IsFloat() bool {
	return d == Float || d == Float16 || d == BFloat16 || d == Double
}

// Largest is the largest finite number of a type that weights are trained in.
func (d DType) Largest() float64 {
	switch d {
	case Float16:
		return 65504
	case BFloat16:
		return 0x1.fep127
	case Double:
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

// String is d's name in ONNX's text syntax.
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}
