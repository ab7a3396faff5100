package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Float8 stores weights as 8-bit floats, each channel scaled to their range. Cast and Mul restore them, which runtimes
// fold.
type Float8 struct {
	pass.Selection
	// Type is the data type: e4m3fn or e5m2.
	Type string `flag:"type" default:"e4m3fn" enum:"e4m3fn,e5m2" usage:"data 'type': e4m3fn, or e5m2 for weights of a wider range"`
	// PerTensor is one scale for the whole tensor instead of one for each output channel.
	PerTensor bool `flag:"per-tensor" usage:"one scale for the whole tensor; without it one for each output channel"`
}

var float8Method = &pass.Method{
	Name:    "float8",
	Command: "quantize",
	Doc: "8-bit floats for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float32 " +
		"arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &Float8{} },
}

// Method describes the method.
func (Float8) Method() *pass.Method { return float8Method }

// Requires returns the capability of runtimes without which there is no form.
func (Float8) Requires() []pass.Requirement {
	return []pass.Requirement{{Capability: pass.Floats8, Nearest: "weight-int8"}}
}

// Run implements pass.Options.
func (o Float8) Run(ctx context.Context, s *pass.Step) error {
	q := &float.SmallFloatQuantizer{SmallFloat: spec.Float8Types[o.Type], Form: pass.CastMul, PerTensor: o.PerTensor,
		Encode: spec.NewFloat8}
	return q.Run(ctx, s)
}
