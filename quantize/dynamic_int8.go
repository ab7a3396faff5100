package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/dynamic"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// DynamicInt8 stores the constant factors of MatMul and Gemm as 8-bit codes and
// multiplies in integers; activations are quantized as they come.
var DynamicInt8 = &pass.Method{
	Name:    "dynamic-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul and Gemm, activations quantized at run time; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		d := &dynamic.Quantizer{Spec: spec.QuantSpec{Symmetric: true}}
		bindScheme(fs, &d.Spec)
		fs.BoolVar(&d.Embeddings, "embeddings", false, "take tables that Gather reads, too")
		d.Data.Bind(fs, 128)
		bindBiasCorrection(fs, &d.Bias, &d.Data)
		return d.Run
	},
}
