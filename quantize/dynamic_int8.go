package quantize

import (
	"context"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/dynamic"
)

// DynamicInt8 stores constant matrices of MatMul and Gemm as 8-bit integers and multiplies integers (MatMulInteger);
// activations are quantized at run time (DynamicQuantizeLinear).
type DynamicInt8 struct {
	pass.Selection
	_ pass.SharedOptions[int8Weights]

	// PerTensor is one scale for the whole tensor instead of one for each output channel.
	PerTensor bool
	// Asymmetric quantizes each channel's own range with a zero point; without it the zero point is the middle of the
	// levels.
	Asymmetric bool
	// WeightType is the quantized data type: int8, the default, or uint8.
	WeightType string
	// ReduceRange uses 7 bits, so that products of uint8 with int8 do not saturate on CPUs without VNNI.
	ReduceRange bool `flag:"reduce-range" usage:"quantize weights to 7 bits, for CPUs without VNNI"`
	// Embeddings quantizes the tables of Gather, too.
	Embeddings bool `flag:"embeddings" usage:"quantize embedding tables (Gather), too"`
	// BiasCorrection subtracts the mean quantization error of each output channel, measured on calibration samples,
	// from biases.
	BiasCorrection bool `flag:"bias-correction" usage:"subtract the mean quantization error of each output channel, measured on calibration samples, from biases"`

	Calibration
}

var dynamicInt8Method = &pass.Method{
	Name:    "dynamic-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul and Gemm, activations quantized at run time; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &DynamicInt8{} },
}

// Method describes the method.
func (DynamicInt8) Method() *pass.Method { return dynamicInt8Method }

// Requires returns the capability of runtimes without which there is no form.
func (DynamicInt8) Requires() []pass.Requirement {
	return []pass.Requirement{{Capability: pass.Integers, Nearest: "weight-int8"}}
}

// Run implements pass.Options.
func (o DynamicInt8) Run(ctx context.Context, s *pass.Step) error {
	q := &dynamic.Quantizer{Spec: pass.SharedOf[int8Weights](o).spec(o.ReduceRange), Embeddings: o.Embeddings,
		Data: calibrate.NewData(o.Calibration, true)}
	q.Bias = biascorrection.Correction{Enabled: o.BiasCorrection, Data: &q.Data}
	return q.Run(ctx, s)
}
