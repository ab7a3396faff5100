package rewrite

import (
	"github.com/mcompress/mcompress/ir"
)

// Estimates of the file size of nodes for one product or lookup, minus the nodes that they replace. A test compares
// them with files: they are upper bounds.
const (
	IntegerProductBytes = 180 // integer product
	DequantizeBytes     = 110 // DequantizeLinear, lookup, or Cast and Mul
	SmallLookupBytes    = 550 // lookup in 8-bit floats, with their list
	ZeroPointBytes      = 140 // zero points subtracted in a lookup, or before Mul
	tensorBytes         = 20  // protobuf framing of quantized values, scales and zero points
	BlockwiseBytes      = 400 // blockwise lookup, or Cast and Mul of blocks
	Float16ScaleBytes   = 70  // float16 scales cast to float32, and the result cast back
	UnpackBytes         = 350 // unpacking bytes
	WideBytes           = 700 // values and zero points of 2 bits in 4
)

// GraphBytes estimates the size of the nodes of v's consumers, without payloads. v's name is part of the names of three
// tensors and of the inputs that read them.
func GraphBytes(perSite int64, sites int, v *ir.Value) int64 {
	return perSite*int64(sites) + 4*int64(len(v.Name)) + tensorBytes
}
