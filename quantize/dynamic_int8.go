package quantize

import (
	"context"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/dynamic"
)

// DynamicInt8 stores constant matrices of MatMul and Gemm as 8-bit integers and multiplies integers (MatMulInteger); activations are
// quantized at run time (DynamicQuantizeLinear).
type DynamicInt8 struct {
	pass.Selection
	Int8
	// ReduceRange uses 7 bits, so that products of uint8 with int8 do not saturate on CPUs without VNNI.
	ReduceRange bool `flag:"reduce-range" usage:"quantize weights to 7 bits, for CPUs without VNNI"`
	// Embeddings quantizes the tables of Gather, too.
	Embeddings bool `flag:"embeddings" usage:"quantize embedding tables (Gather), too"`
	BiasCorrection
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
	q := &dynamic.Quantizer{Spec: o.spec(o.ReduceRange), Embeddings: o.Embeddings, Data: calibrate.NewData(o.Calibration, true)}
	q.Bias = biascorrection.Correction{Enabled: o.BiasCorrection.BiasCorrection, Data: &q.Data}
	return q.Run(ctx, s)
}
