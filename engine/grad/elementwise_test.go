package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestElementwise(t *testing.T) {
	checkAll(t, []probe{
		{op: onnx("Add"), in: []*ir.Array{values(1, 2, 3), values(2, 3)}},
		{op: onnx("Add"), in: []*ir.Array{values(1, 2, 1, 3), values(2, 4, 1)}},
		{op: onnx("Relu"), in: []*ir.Array{apart(1, 2, 3)}},
	})
}
