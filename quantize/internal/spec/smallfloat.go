package spec

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A SmallFloat is a float of at most 8 bits, and the first opset whose operators support it.
type SmallFloat struct {
	Dt     ir.DType
	Format kernel.SmallFloat
	Opset  int64
}

// A SmallFloatEncoding is a weight as small floats and scales.
type SmallFloatEncoding interface {
	Encoding
	// EmitDequantize inserts the nodes that dequantize before at.
	EmitDequantize(g *ir.Graph, at *ir.Node, quantized, scales *ir.Value) *ir.Value
}

// noScaleReason is why a channel with that maximum magnitude has no scale, or "".
func noScaleReason(bits uint32, largest float32) string {
	switch peak := math.Float32frombits(bits); {
	case bits > InfBits:
		return "it holds NaN"
	case bits == InfBits:
		return "it holds infinities"
	case bits > 0 && !IsNormal(peak/largest):
		return fmt.Sprintf("its largest magnitude, %g, gives no scale of normal float32 size", peak)
	}
	return ""
}

// Float4Type is e2m1. DequantizeLinear supports it, and output_dtype, since opset 23.
var Float4Type = SmallFloat{Dt: ir.Float4E2M1, Format: kernel.E2M1, Opset: 23}
