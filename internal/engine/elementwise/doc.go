// Package elementwise is the family of operators whose output elements each depend on one element of every input:
// arithmetic, comparisons and logic with NumPy's broadcasting, functions and activations, Where, Clip, Cast and
// Dropout.
//
// Integers wrap around, and division by an integer zero gives 0, as in NumPy. float16 and bfloat16 are computed in
// float32 and rounded once, integers in 64 bits. It must not know graphs, plans or other families.
package elementwise

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(
		binaryOps(), variadicOps(), powOps(),
		unaryOps(), numberOps(), activationOps(), contribOps(),
		whereOps(), clipOps(), castOps(), dropoutOps(), unpackBitsOps(),
	)
}
