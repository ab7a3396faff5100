// Package linear holds the operators that multiply matrices: MatMul, Gemm, Einsum and attention.
//
// It must not know graphs or plans; matrix products are in engine/gemm, and attention of heads in the package below.
package linear

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(matMuls(), gemms(), einsums(), attentions(), contribAttentions(), flexAttentions(),
		fusedAttentions(), rotaries(), linearAttentions(), causalConvs(), swiGLUs())
}
