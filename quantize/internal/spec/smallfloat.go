package spec

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
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

// noScaleOf is the reason of weights whose maximum magnitude has no scale.
func noScaleOf(peak float32) pass.Reason {
	return pass.Reason{Code: pass.NoScale, Detail: fmt.Sprintf("largest magnitude %g", peak)}
}

// NotFinite is the reason of weights whose maximum magnitude, as bits, is NaN or infinite.
func NotFinite(bits uint32) pass.Reason {
	switch {
	case bits > InfBits:
		return pass.Reason{Code: pass.NotFinite, Detail: "NaN"}
	case bits == InfBits:
		return pass.Reason{Code: pass.NotFinite, Detail: "infinities"}
	}
	return pass.Reason{}
}

// Float4Type is e2m1. DequantizeLinear supports it, and output_dtype, since opset 23.
var Float4Type = SmallFloat{Dt: ir.Float4E2M1, Format: kernel.E2M1, Opset: 23}
