package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// Float4 stores weights as floats of 4 bits, e2m1, whose blocks share a float16 scale, behind DequantizeLinear. ONNX Runtime has no CPU
// kernel for them: the embedded engine alone runs the model.
var Float4 = &pass.Method{
	Name:    "float4",
	Command: "quantize",
	Doc:     "4-bit floats in blocks for weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings; ONNX Runtime does not run them on CPUs; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		size := blockSize(weightonly.DefaultBlock)
		fs.Var(&size, "block", "`number` of weights that share a scale: a power of two from 16 to 256")
		w := &float.SmallFloatQuantizer{Form: pass.BlockedFloat4, Note: "ONNX Runtime has no CPU kernel for it: the embedded engine runs the model"}
		// DequantizeLinear knows the type and output_dtype from opset 23 on.
		w.SmallFloat = spec.SmallFloat{Dt: ir.Float4E2M1, Format: kernel.E2M1, Opset: 23}
		w.Encode = func(t spec.SmallFloat, v *ir.Value, axes []int) spec.SmallFloatEncoding {
			return spec.NewFloat4(t, v, axes, int64(size))
		}
		return w.Run
	},
}
