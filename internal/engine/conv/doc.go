// Package conv is the family of operators that slide a window over images or sample them: convolutions, pools, resizing
// and grid sampling, in any number of spatial axes.
//
// A convolution becomes a matrix product of package gemm where that is faster; the patches (im2col) are packed tile by
// tile on demand and never all exist at once. Everything else is loops over whole rows.
//
// It must not know graphs, plans, files or the neighbours of a node. Fused operators have rows of their own
// (FusedConv).
package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(
		maxPools(), averagePools(), globalPools(), unpools(), resizes(), convolutions(), quantizedConvs(),
		transposed(), deformable(),
		gridSamples(), affineGrids(), regions(), scalers(),
	)
}
