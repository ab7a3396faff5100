package quantize

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Float4 stores weights as 4-bit floats (e2m1) in blocks with a float16 scale each, before DequantizeLinear. ONNX
// Runtime has no CPU kernel for them: the method requires a target that has, such as openvino or embedded.
type Float4 struct {
	pass.Selection
	// Block is the number of elements that share a scale: a power of two from 16 to 256.
	Block BlockSize `flag:"block" default:"32" usage:"block size: 'number' of elements that share a scale, a power of two from 16 to 256"`
}

var float4Method = &pass.Method{
	Name:    "float4",
	Command: "quantize",
	Doc: "4-bit floats in blocks for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings; " +
		"ONNX Runtime does not run them on CPUs: requires --target openvino or embedded; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &Float4{} },
}

// Method describes the method.
func (Float4) Method() *pass.Method { return float4Method }

// Check implements pass.Checker.
func (o Float4) Check() error {
	if !o.Block.valid() {
		return pass.OptionErrorf("--block %d: must be a power of two from 16 to 256", o.Block)
	}
	return nil
}

// Requires returns the capability of runtimes without which there is no form.
func (Float4) Requires() []pass.Requirement {
	return []pass.Requirement{{Capability: pass.Floats4, Nearest: "weight-int4"}}
}

// Run implements pass.Options.
func (o Float4) Run(ctx context.Context, s *pass.Step) error {
	encode := func(t spec.SmallFloat, v *ir.Value, axes []int) spec.SmallFloatEncoding {
		return spec.NewFloat4(t, v, axes, int64(o.Block), s.Env.Target.Can(pass.Padding))
	}
	q := &float.SmallFloatQuantizer{SmallFloat: spec.Float4Type, Form: pass.BlockedFloat4, Encode: encode}
	q.Note = pass.Reason{Code: pass.NoKernel, Detail: "float4 on the CPU, the embedded engine runs the model"}
	return q.Run(ctx, s)
}
