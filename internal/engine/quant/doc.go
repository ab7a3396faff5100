// Package quant is the family of operators on quantized numbers: QuantizeLinear and DequantizeLinear, 8-bit matrix
// products and convolutions, ONNX Runtime's QLinear operators, and products, lookups and mixtures of experts with
// weights of a few bits (MatMulNBits, GatherBlockQuantized, QMoE; and MoE, their float form).
//
// Results are bit-identical to the specification: divisions by a scale are divisions, halves are rounded to even, and
// float32 is rounded after each step. Integer products are exact.
//
// It must not know graphs, plans, files or how a model was quantized.
package quant

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(
		quantizeOps(), integerProducts(), integerConvolutions(), integerConvOps(), quantizedAddOps(),
		quantizedMaxPoolOps(), matMulNBitsOps(), gatherBlockOps(), expertOps(), qLinearOps(),
	)
}
