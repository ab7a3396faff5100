package ort

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// elementTypes are the types of ONNXTensorElementDataType by number. Up to Float4E2M1 they are ONNX's own.
var elementTypes = [...]ir.DType{
	1: ir.Float, ir.Uint8, ir.Int8, ir.Uint16, ir.Int16, ir.Int32, ir.Int64, ir.String, ir.Bool,
	ir.Float16, ir.Double, ir.Uint32, ir.Uint64, ir.Complex64, ir.Complex128, ir.BFloat16,
	ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ,
	ir.Uint4, ir.Int4, ir.Float4E2M1,
	ir.Uint2, ir.Int2,
}

// elementType is ONNX Runtime's number of a type.
func elementType(dt ir.DType) (uintptr, error) {
	for number, known := range elementTypes {
		if known == dt && dt != ir.Undefined {
			return uintptr(number), nil
		}
	}
	return 0, fmt.Errorf("ONNX Runtime does not support %s", dt)
}

func dtypeOf(number int32) (ir.DType, error) {
	if number <= 0 || int(number) >= len(elementTypes) {
		return ir.Undefined, fmt.Errorf("unknown ONNX Runtime element type %d", number)
	}
	return elementTypes[number], nil
}
