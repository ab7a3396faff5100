// Package quant is the family of operators on quantized numbers: from floats to codes and back,
// products and convolutions of 8-bit codes, ONNX Runtime's operators on codes, and products with
// weights of a few bits.
//
// Results are those of the specification bit for bit: divisions by a scale are divisions, halves
// are rounded to even, and float32 is rounded after each step. Integer products are exact.
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
		linears(), integerProducts(), integerConvolutions(), bitProducts(), codeOperators(),
	)
}
