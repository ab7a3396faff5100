package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// WeightInt2 stores weights of any operator as 2-bit codes, blocks of which share a scale, and computes in float.
var WeightInt2 = &pass.Method{
	Name:    "weight-int2",
	Command: "quantize",
	Doc:     "2-bit weights in blocks of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &weightonly.Quantizer{Blocks: &weightonly.BlockOptions{Bits: 2}}
		bindBlocks(fs, w.Blocks)
		bindBiasCorrection(fs, &w.Bias, &w.Blocks.GPTQ.Data)
		return w.Run
	},
}
