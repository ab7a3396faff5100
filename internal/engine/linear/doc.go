// Package linear holds the operators that multiply matrices: MatMul, Gemm and what is built
// on them.
//
// It must not know graphs or plans; the multiplication itself is engine/gemm's, and attention is computed
// by the package below.
package linear

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(matMuls(), gemms(), einsums(), attentions(), contribAttentions(), flexAttentions(), fusedAttentions(), rotaries(), linearAttentions(), causalConvs(), swiGLUs())
}
