package spec

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A smallType is a float of at most 8 bits, and the first opset whose operators take it.
type SmallFloat struct {
	Dt     ir.DType
	Format kernel.SmallFloat
	Opset  int64
}

// A smallWeight is a weight as codes and scales.
type SmallFloatEncoding interface {
	Encoding
	// emit inserts the nodes that make floats of codes and scales in front of at.
	EmitDequantize(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value
}

// noScale is why a channel with that largest magnitude has no scale, or "".
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
