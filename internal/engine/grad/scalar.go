package grad

import (
	"encoding/binary"
	"math"

	"github.com/mcompress/mcompress/ir"
)

// scalarPayload returns the payload of one element of type Float or Double.
func scalarPayload(dt ir.DType, x float64) ir.Mem {
	if dt == ir.Double {
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	}
	return ir.Floats(float32(x))
}
