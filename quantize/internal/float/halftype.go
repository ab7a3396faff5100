package float

import (
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/spec"
)

// BFloat16Type is bfloat16: the upper half of a float32.
var BFloat16Type = HalfType{
	DType:        ir.BFloat16,
	opset:        13, // of Cast
	computeOpset: 22, // of Conv
	stored:       pass.CastBFloat16,
	computed:     pass.BFloat16,
	lookup:       pass.GatherBFloat16,
	largest:      0x1.fep127,
	Overflow:     0x7f7f8000, // halfway to 2^128
	minNormal:    0x00800000, // float32's own
	half:         0x1p-8,
	subnormal:    0x1p-134,
	write:        kernel.BF16FromF32,
	Note: pass.Reason{Code: pass.NoKernel,
		Detail: "products of bfloat16 on the CPU, the embedded engine runs the model"},
}

// Binary16 is float16, the binary16 of IEEE 754-2019, section 3.6.
var Binary16 = HalfType{
	DType:        ir.Float16,
	opset:        castByNumber,
	computeOpset: 7,
	stored:       pass.CastFloat16,
	computed:     pass.Float16,
	lookup:       pass.GatherFloat16,
	largest:      spec.LargestFloat16,
	Overflow:     0x477ff000, // 65520, halfway to 2^16
	minNormal:    0x38800000, // 2^-14
	half:         0x1p-11,
	subnormal:    0x1p-25,
	write:        kernel.F16FromF32,
}

// castByNumber is the first opset whose Cast has its type as a number.
const castByNumber = 6

// A HalfType is a float of 16 bits: its range, and its forms in a model.
type HalfType struct {
	DType               ir.DType
	opset, computeOpset int64     // the first ones for storage and for arithmetic
	stored              pass.Form // before a Cast
	computed, lookup    pass.Form // read by its consumers, and as a table
	largest             float32
	Overflow            uint32  // bits of the smallest float32 that rounds to infinity
	minNormal           uint32  // bits of the smallest normal number
	half, subnormal     float32 // half the spacing of numbers: relative to a number, and of subnormal ones
	write               func(dst []uint16, x []float32)
	Note                pass.Reason // on models that compute in it
}
