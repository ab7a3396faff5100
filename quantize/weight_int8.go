package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// blockOptionsOf is o, where one of it was given, with what s says beside it.
func blockOptionsOf(s spec.QuantSpec, o *weightonly.BlockOptions) *weightonly.BlockOptions {
	if !o.Given() {
		return nil
	}
	b := *o
	b.WeightType, b.Symmetric = s.DType().String(), s.Symmetric
	return &b
}

// WeightInt8 stores weights of any operator as 8-bit codes and computes in float.
var WeightInt8 = &pass.Method{
	Name:    "weight-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &weightonly.Quantizer{Spec: spec.QuantSpec{Symmetric: true}}
		bindScheme(fs, &w.Spec)
		o := &weightonly.BlockOptions{Bits: 8}
		bindShared(fs, o)
		bindBiasCorrection(fs, &w.Bias, &o.GPTQ.Data)
		return func(c *pass.Context) error {
			if o.Given() && w.Spec.PerTensor {
				return pass.OptionErrorf("--per-tensor has no blocks: leave out --block, --search, --algo and --form")
			}
			w.Blocks = blockOptionsOf(w.Spec, o)
			return w.Run(c)
		}
	},
}
