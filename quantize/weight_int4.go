package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt4 stores weights of any layer as 4-bit integers; arithmetic is in float. The default is asymmetric blocks of 32.
type WeightInt4 struct {
	pass.Selection
	// WeightType is the quantized data type: int4 or uint4.
	WeightType string `flag:"weight-type" default:"uint4" enum:"int4,uint4" usage:"quantized data 'type' of weights: int4 or uint4"`
	// Symmetric quantizes without zero points; without it each block has a zero point.
	Symmetric bool `flag:"symmetric" usage:"symmetric weights, without zero points; without it each block has a zero point"`
	// PerChannel is one scale for each output channel instead of blocks.
	PerChannel bool `flag:"per-channel" usage:"one scale for each output channel instead of blocks"`
	Blockwise  `defaults:"block=32,search=auto,algo=rtn,form=auto"`
}

var weightInt4Method = &pass.Method{
	Name:    "weight-int4",
	Command: "quantize",
	Doc:     "4-bit weights in blocks of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &WeightInt4{} },
}

// Method describes the method.
func (WeightInt4) Method() *pass.Method { return weightInt4Method }

// Check implements pass.Checker.
func (o WeightInt4) Check() error { return o.check(o.PerChannel) }

// Requires returns the capability of runtimes without which there is no form.
func (o WeightInt4) Requires() []pass.Requirement { return o.requires(4) }

// Run implements pass.Options.
func (o WeightInt4) Run(ctx context.Context, s *pass.Step) error {
	b := o.options(4, o.WeightType, o.Symmetric)
	b.PerChannel = o.PerChannel
	return (&weightonly.Quantizer{Blocks: b, Bias: o.correction()}).Run(ctx, s)
}
