package pass

import "github.com/mcompress/mcompress/ir"

// A Form is the form in which a weight is stored, with its effect on runtime memory.
type Form struct {
	Name    string
	Dense   bool   // the runtime expands it to a dense weight on loading
	Expands int64  // bytes that the runtime stores for a byte of the file; 0 if it stores the file's bytes
	Domain  string // of its operators, if it is not ONNX's own
}

// RuntimeBytes is the runtime memory of a part of a weight that is not Dense.
func (f Form) RuntimeBytes(t *ir.Tensor) int64 {
	// 0 is the zero value: the runtime stores the bytes of the file.
	return t.Bytes() * max(1, f.Expands)
}

// MeasuredRuntime is the runtime whose behaviour Form.Dense and operator.Facts.Float16CPU describe. A test in package
// report asserts the runtime memory against its optimized graph.
const MeasuredRuntime = "ONNX Runtime 1.31.1"

// MicrosoftDomain is the domain of the operators of ONNX Runtime.
const MicrosoftDomain = "com.microsoft"

// The forms of compressed weights.
var (
	// InPlace keeps the weight's type and shape: pruned weights.
	InPlace = Form{Name: "in-place"}
	// Smaller is a weight with fewer channels.
	Smaller = Form{Name: "smaller"}
	// Rescaled keeps the weight's type and shape, with scaled channels. It prepares a method and does not count
	// in coverage.
	Rescaled = Form{Name: "rescaled"}
	// Folded is a constant that was folded into others, such as a factor into a weight.
	Folded = Form{Name: "folded"}
	// Factors are two matrices, or filters, whose product replaces the weight.
	Factors = Form{Name: "factors"}
	// MatMulInteger is an int8 weight of integer kernels.
	MatMulInteger = Form{Name: "matmul-integer"}
	// GatherQuantized gathers rows of quantized values and of scales.
	GatherQuantized = Form{Name: "gather-codes"}
	// Dequantize is DequantizeLinear before MatMul or Gemm, which the runtime fuses into MatMulNBits.
	Dequantize = Form{Name: "dequantize-linear"}
	// NBits is MatMulNBits, an operator of ONNX Runtime.
	NBits = Form{Name: "matmul-nbits", Domain: MicrosoftDomain}
	// WideNBits is NBits with 4 bits for values that the file has in 2, which runtimes fold.
	WideNBits = Form{Name: "matmul-nbits-wide", Domain: MicrosoftDomain}
	// CastMul is a Cast of quantized values, or arithmetic that unpacks bytes, for a palette a Gather of its entries,
	// and a Mul by scales: folded into a dense weight.
	CastMul = Form{Name: "cast-mul", Dense: true}
	// CastProduct is a Cast of quantized values before a product and a Mul by scales after it: folded into a dense
	// matrix of quantized values. Of CastMul runtimes hold two, as they keep what the Cast computes.
	CastProduct = Form{Name: "cast-product", Dense: true}
	// CastFloat16 is a Cast of float16 values: folded into a dense weight.
	CastFloat16 = Form{Name: "cast-float16", Dense: true}
	// CastBFloat16 is CastFloat16 with bfloat16.
	CastBFloat16 = Form{Name: "cast-bfloat16", Dense: true}
	// Float16 is a float16 weight without Cast. Kernels for CPUs widen it to float32.
	Float16 = Form{Name: "float16", Dense: true}
	// GatherFloat16 is a float16 table of Gather: gathered rows are widened.
	GatherFloat16 = Form{Name: "gather-float16"}
	// GatherBFloat16 is GatherFloat16 with bfloat16.
	GatherBFloat16 = Form{Name: "gather-bfloat16"}
	// BFloat16 is a bfloat16 weight without Cast. The embedded engine and OpenVINO support it.
	BFloat16 = Form{Name: "bfloat16"}
	// BlockedFloat4 is DequantizeLinear of blockwise 4-bit floats. The embedded engine and OpenVINO support it.
	BlockedFloat4 = Form{Name: "blocked-float4"}
	// The sparse forms: folded into dense weights.
	COO     = Form{Name: "coo", Dense: true}
	CSR     = Form{Name: "csr", Dense: true}
	BSR     = Form{Name: "bsr", Dense: true}
	Bitmask = Form{Name: "bitmask", Dense: true}
	Delta   = Form{Name: "delta", Dense: true}
)

// GatherBlocks is GatherQuantized with values of less than 8 bits, which Gather does not support: runtimes fold their
// conversion to bytes.
func GatherBlocks(bits int) Form { return Form{Name: "gather-blocks", Expands: int64(8 / bits)} }
