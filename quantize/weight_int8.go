package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt8 stores weights of any layer as 8-bit integers; arithmetic is in float. Weights are quantized per channel, or blockwise if
// one of Block, Search, Algo and Form is given.
type WeightInt8 struct {
	pass.Selection
	Int8
	// ReduceRange uses 7 bits, so that products of uint8 with int8 do not saturate on CPUs without VNNI.
	ReduceRange bool `flag:"reduce-range" usage:"quantize weights to 7 bits, for CPUs without VNNI"`
	Blockwise
}

var weightInt8Method = &pass.Method{
	Name:    "weight-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &WeightInt8{} },
}

// Method describes the method.
func (WeightInt8) Method() *pass.Method { return weightInt8Method }

// Check implements pass.Checker.
func (o WeightInt8) Check() error {
	if o.given() && o.PerTensor {
		return pass.OptionErrorf("--per-tensor excludes blocks: leave out --block, --search, --algo and --form")
	}
	return o.check(false)
}

// Requires returns the capability of runtimes without which there is no form.
func (o WeightInt8) Requires() []pass.Requirement { return o.requires(8) }

// Run implements pass.Options.
func (o WeightInt8) Run(ctx context.Context, s *pass.Step) error {
	q := &weightonly.Quantizer{Spec: o.spec(o.ReduceRange), Bias: o.correction()}
	if o.given() {
		q.Blocks = o.options(8, o.WeightType, !o.Asymmetric)
	}
	return q.Run(ctx, s)
}
