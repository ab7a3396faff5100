package pass

import "github.com/mcompress/mcompress/ir"

// A Form names how a weight is stored and what that means once a runtime has loaded it.
type Form struct {
	Name     string
	Dense    bool // the runtime expands it when it loads: see Runtime
	Unpacked bool // codes below a byte take one each then
}

// Held is what a part of a weight that is not Dense takes once a runtime has loaded it.
func (f Form) RuntimeBytes(t *ir.Tensor) int64 {
	if f.Unpacked && t.DType.Bits() < 8 {
		return t.Elems()
	}
	return t.Bytes()
}

// Runtime is the runtime whose behaviour Form.Dense describes. Tests assert each
// form against its optimised graph.
const Runtime = "ONNX Runtime 1.31.1"

// The forms that methods emit.
var (
	// InPlace keeps the weight's type and shape: pruned weights.
	InPlace = Form{Name: "in-place"}
	// Smaller is a weight with fewer channels.
	Smaller = Form{Name: "smaller"}
	// Rescaled keeps the weight's type and shape, with channels multiplied: preparation, that
	// coverage does not count.
	Rescaled = Form{Name: "rescaled"}
	// Folded is a constant that others hold now, such as a factor that went into a weight.
	Folded = Form{Name: "folded"}
	// Factors are two matrices, or filters, that stand for their product.
	Factors = Form{Name: "factors"}
	// MatMulInteger holds int8 codes that integer kernels read.
	MatMulInteger = Form{Name: "matmul-integer"}
	// GatherCodes looks codes and scales up row by row.
	GatherQuantized = Form{Name: "gather-codes"}
	// GatherBlocks does so with codes below a byte, which Gather does not take: a Cast in front is folded.
	GatherBlocks = Form{Name: "gather-blocks", Unpacked: true}
	// Dequantize is DequantizeLinear in front of MatMul or Gemm, which becomes MatMulNBits.
	Dequantize = Form{Name: "dequantize-linear"}
	// NBits is MatMulNBits itself, an operator of ONNX Runtime's own.
	NBits = Form{Name: "matmul-nbits"}
	// CastMul multiplies cast codes by scales: folded into a dense weight.
	CastMul = Form{Name: "cast-mul", Dense: true}
	// CastFloat16 casts stored halves: folded into a dense weight.
	CastFloat16 = Form{Name: "cast-float16", Dense: true}
	// CastBFloat16 does so with bfloat16.
	CastBFloat16 = Form{Name: "cast-bfloat16", Dense: true}
	// Float16 is a half that its readers take as it is: kernels for CPUs compute in float32.
	Float16 = Form{Name: "float16", Dense: true}
	// GatherFloat16 is a table of halves: rows are widened once they are looked up.
	GatherFloat16 = Form{Name: "gather-float16"}
	// BFloat16 is likewise; there are no kernels at all, so that the embedded engine alone runs it.
	BFloat16 = Form{Name: "bfloat16"}
	// BlockedFloat4 is DequantizeLinear of 4-bit floats in blocks, which the embedded engine alone runs.
	BlockedFloat4 = Form{Name: "blocked-float4"}
	// Sparse forms are all folded.
	COO     = Form{Name: "coo", Dense: true}
	CSR     = Form{Name: "csr", Dense: true}
	BSR     = Form{Name: "bsr", Dense: true}
	Bitmask = Form{Name: "bitmask", Dense: true}
	Delta   = Form{Name: "delta", Dense: true}
)
