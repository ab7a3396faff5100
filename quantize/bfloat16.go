package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// BFloat16 stores float32 weights in bfloat16: float32's range, and eight bits of precision. ONNX Runtime has no CPU kernel
// for products of bfloat16, so that a graph that computes in it runs in the embedded engine alone.
var BFloat16 = &pass.Method{
	Name:    "bfloat16",
	Command: "quantize",
	Doc:     "bfloat16 storage of float32 weights, float32 arithmetic unless asked otherwise; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind:    func(fs *flag.FlagSet) func(*pass.Context) error { return bindNarrow(fs, &BFloat16Type) },
}

var BFloat16Type = HalfType{
	DType:        ir.BFloat16,
	opset:        13, // whose Cast knows it
	computeOpset: 22, // whose Conv does
	stored:       pass.CastBFloat16,
	computed:     pass.BFloat16,
	lookup:       pass.BFloat16,
	largest:      0x1.fep127,
	overflow:     0x7f7f8000, // halfway to 2^128
	minNormal:    0x00800000, // float32's own
	write:        kernel.BF16FromF32,
	note:         pass.Runtime + " has no CPU kernel for products of bfloat16: the embedded engine runs the model",
}
