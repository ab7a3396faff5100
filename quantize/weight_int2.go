package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt2 stores weights of any layer as 2-bit integers; arithmetic is in float. The default is asymmetric blocks of 32.
type WeightInt2 struct {
	pass.Selection
	// WeightType is the quantized data type: int2 or uint2.
	WeightType string `flag:"weight-type" default:"uint2" enum:"int2,uint2" usage:"quantized data 'type' of weights: int2 or uint2"`
	// Symmetric quantizes without zero points; without it each block has a zero point.
	Symmetric bool `flag:"symmetric" usage:"symmetric weights, without zero points; without it each block has a zero point"`
	// PerChannel is one scale for each output channel instead of blocks.
	PerChannel bool `flag:"per-channel" usage:"one scale for each output channel instead of blocks"`
	Blockwise  `defaults:"block=32,search=mse,algo=rtn,form=auto"`
}

var weightInt2Method = &pass.Method{
	Name:    "weight-int2",
	Command: "quantize",
	Doc:     "2-bit weights in blocks of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &WeightInt2{} },
}

// Method describes the method.
func (WeightInt2) Method() *pass.Method { return weightInt2Method }

// Check implements pass.Checker.
func (o WeightInt2) Check() error { return o.check(o.PerChannel) }

// Requires returns the capability of runtimes without which there is no form.
func (o WeightInt2) Requires() []pass.Requirement { return o.requires(2) }

// Run implements pass.Options.
func (o WeightInt2) Run(ctx context.Context, s *pass.Step) error {
	b := o.options(2, o.WeightType, o.Symmetric)
	b.PerChannel = o.PerChannel
	return (&weightonly.Quantizer{Blocks: b, Bias: o.correction()}).Run(ctx, s)
}
