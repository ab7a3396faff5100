package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt4 stores weights of any operator as 4-bit codes, blocks of which share a scale, and computes in float.
var WeightInt4 = &pass.Method{
	Name:    "weight-int4",
	Command: "quantize",
	Doc:     "4-bit weights in blocks of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &weightonly.Quantizer{Blocks: &weightonly.BlockOptions{Bits: 4}}
		bindBlocks(fs, w.Blocks)
		bindBiasCorrection(fs, &w.Bias, &w.Blocks.GPTQ.Data)
		return w.Run
	},
}
