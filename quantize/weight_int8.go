package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt8 stores weights of any layer as 8-bit integers; arithmetic is in float. Weights are quantized per channel,
// or blockwise if one of Block, Search, Algo and Form is given.
type WeightInt8 struct {
	pass.Selection
	_ pass.SharedOptions[int8Weights]
	_ pass.SharedOptions[blockwise]

	// PerTensor is one scale for the whole tensor instead of one for each output channel.
	PerTensor bool
	// Asymmetric quantizes each channel's own range with a zero point; without it the zero point is the middle of the
	// levels.
	Asymmetric bool
	// WeightType is the quantized data type: int8, the default, or uint8.
	WeightType string
	// ReduceRange uses 7 bits, so that products of uint8 with int8 do not saturate on CPUs without VNNI.
	ReduceRange bool `flag:"reduce-range" usage:"quantize weights to 7 bits, for CPUs without VNNI"`
	// Block is the number of elements along the reduction axis that share a scale: a power of two from 16 to 256.
	Block BlockSize
	// Search is the rule for scales: auto, mse or minmax.
	Search string
	// Algo is the rounding algorithm: rtn, hqq, gptq or awq.
	Algo string
	// Form is the form of matrix products: auto, dequantizelinear or matmulnbits.
	Form string
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

var weightInt8Method = &pass.Method{
	Name:    "weight-int8",
	Command: "quantize",
	Doc: "8-bit weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; " +
		"needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &WeightInt8{} },
}

// Method describes the method.
func (WeightInt8) Method() *pass.Method { return weightInt8Method }

// Check implements pass.Checker.
func (o WeightInt8) Check() error {
	if o.blockwise().given() && o.PerTensor {
		return pass.OptionErrorf("--per-tensor excludes blocks: leave out --block, --search, --algo and --form")
	}
	return o.blockwise().check(false)
}

func (o WeightInt8) blockwise() blockwise { return pass.SharedOf[blockwise](o) }

// Requires returns the capability of runtimes without which there is no form.
func (o WeightInt8) Requires() []pass.Requirement { return o.blockwise().requires(8) }

// Run implements pass.Options.
func (o WeightInt8) Run(ctx context.Context, s *pass.Step) error {
	blocks := o.blockwise()
	q := &weightonly.Quantizer{Spec: pass.SharedOf[int8Weights](o).spec(o.ReduceRange),
		Bias: blocks.correction(o.Calibration)}
	if blocks.given() {
		q.Blocks = blocks.options(8, o.WeightType, !o.Asymmetric, o.Calibration)
	}
	return q.Run(ctx, s)
}
