package rewrite

import (
	"github.com/mcompress/mcompress/ir"
)

// What the nodes of one product or lookup take in the file, more than those that they
// replace. A test holds the estimates against files: they are not below what it takes.
const (
	IntegerProductBytes = 180 // integer product
	DequantizeBytes     = 110 // DequantizeLinear, lookup, or Cast and Mul
	ZeroPointBytes      = 140 // zero points subtracted in a lookup, or in front of Mul
	tensorBytes         = 20  // the frames of codes, scales and zero points
	BlockwiseBytes      = 400 // blocks looked up, or Cast and Mul of blocks
	Float16ScaleBytes   = 70  // float16 scales cast to float32, and what comes of them cast back
	UnpackBytes         = 300 // bytes taken apart, for each code but one
)

// graphBytes estimates what storing v in another way adds to the file, payloads apart.
// Its name stands in three tensors' names and in the nodes that read them.
func GraphBytes(perSite int64, sites int, v *ir.Value) int64 {
	return perSite*int64(sites) + 4*int64(len(v.Name)) + tensorBytes
}
