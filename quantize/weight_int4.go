package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt4 stores weights of any layer as 4-bit integers; arithmetic is in float. The default is asymmetric blocks of
// 32.
type WeightInt4 struct {
	pass.Selection
	_ pass.SharedOptions[blockwise]

	// WeightType is the quantized data type: int4 or uint4.
	WeightType string `flag:"weight-type" default:"uint4" enum:"int4,uint4" usage:"quantized data 'type' of weights: int4 or uint4"`
	// Symmetric quantizes without zero points; without it each block has a zero point.
	Symmetric bool `flag:"symmetric" usage:"symmetric weights, without zero points; without it each block has a zero point"`
	// PerChannel is one scale for each output channel instead of blocks.
	PerChannel bool `flag:"per-channel" usage:"one scale for each output channel instead of blocks"`
	// Block is the number of elements along the reduction axis that share a scale: a power of two from 16 to 256.
	Block BlockSize `default:"32"`
	// Search is the rule for scales: auto, mse or minmax.
	Search string `default:"auto"`
	// Algo is the rounding algorithm: rtn, hqq, gptq or awq.
	Algo string `default:"rtn"`
	// Form is the form of matrix products: auto, dequantizelinear or matmulnbits.
	Form string `default:"auto"`
	// AccuracyLevel is MatMulNBits' attribute: 0 (float32) to 4 (8-bit activations). The default is 4 for 8-bit
	// weights, for which no other level has a fast kernel, and 0 for others.
	AccuracyLevel *int64
	// NoActOrder turns activation order of GPTQ off.
	NoActOrder bool
	// NoSequential takes the Hessians of GPTQ from the source model, so that matrices do not depend on each other.
	NoSequential bool
	// Damp is the dampening of GPTQ as a fraction of the mean diagonal of the Hessian.
	Damp *float64
	// BiasCorrection subtracts the mean quantization error of each output channel, measured on calibration samples,
	// from biases.
	BiasCorrection bool

	Calibration
}

var weightInt4Method = &pass.Method{
	Name:    "weight-int4",
	Command: "quantize",
	Doc: "4-bit weights in blocks of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float " +
		"arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &WeightInt4{} },
}

// Method describes the method.
func (WeightInt4) Method() *pass.Method { return weightInt4Method }

// Check implements pass.Checker.
func (o WeightInt4) Check() error { return o.blockwise().check(o.PerChannel) }

func (o WeightInt4) blockwise() blockwise { return pass.SharedOf[blockwise](o) }

// Requires returns the capability of runtimes without which there is no form.
func (o WeightInt4) Requires() []pass.Requirement { return o.blockwise().requires(4) }

// Run implements pass.Options.
func (o WeightInt4) Run(ctx context.Context, s *pass.Step) error {
	blocks := o.blockwise()
	b := blocks.options(4, o.WeightType, o.Symmetric, o.Calibration)
	b.PerChannel = o.PerChannel
	return (&weightonly.Quantizer{Blocks: b, Bias: blocks.correction(o.Calibration)}).Run(ctx, s)
}
