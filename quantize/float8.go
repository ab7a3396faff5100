package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// Float8 stores weights as floats of 8 bits, each channel scaled to their range, behind Cast and Mul, which runtimes fold.
var Float8 = &pass.Method{
	Name:    "float8",
	Command: "quantize",
	Doc:     "8-bit floats for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float32 arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &float.SmallFloatQuantizer{Form: pass.CastMul, Encode: spec.NewFloat8}
		typ := "e4m3fn"
		fs.Var(word{&typ, []string{"e4m3fn", "e5m2"}}, "type", "`type` of the codes: e4m3fn, or e5m2 for weights of a wider range")
		fs.Var(choice{&w.PerTensor, true}, "per-tensor", "one scale for the whole tensor")
		return func(c *pass.Context) error {
			w.SmallFloat = spec.Float8Types[typ]
			return w.Run(c)
		}
	},
}
