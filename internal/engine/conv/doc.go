// Package conv is the family of operators that slide a window over images or sample them:
// convolutions, pools, resizing and grids, in any number of spatial axes.
//
// A convolution becomes a product of packed panels where that is faster, and package gemm
// computes it; the patches are packed tile by tile as the product asks for them and never all
// exist at once. Everything else is loops over whole rows.
//
// It must not know graphs, plans, files or which operators stand around a node. What a node
// and its neighbours may be fused into has a row of its own (FusedConv).
package conv

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(
		maxPools(), averagePools(), globalPools(), unpools(), resizes(), convolutions(), codeConvolutions(), transposed(), deformable(),
		gridSamples(), affineGrids(), regions(), scalers(),
	)
}
