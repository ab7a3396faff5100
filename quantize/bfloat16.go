package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
)

// BFloat16 stores float32 weights in bfloat16: float32's range, and eight bits of precision. ONNX Runtime has no CPU kernel
// for products of bfloat16, so that a graph that computes in it runs in the embedded engine alone.
var BFloat16 = &pass.Method{
	Name:    "bfloat16",
	Command: "quantize",
	Doc:     "bfloat16 storage of float32 weights, float32 arithmetic unless asked otherwise; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind:    func(fs *flag.FlagSet) func(*pass.Context) error { return bindNarrow(fs, &float.BFloat16Type) },
}
