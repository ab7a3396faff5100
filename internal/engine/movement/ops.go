package movement

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(tensors(slices.Concat(
		views(),
		shapeOps(),
		transposes(),
		concats(), splits(),
		cuts(),
		expands(), tiles(),
		depthToSpace(),
		gathers(),
		fills(),
		scatters(),
		pads(),
		compresses(), reverses(),
		ranges(),
		col2Im(),
	)), sequences(), optionals(), nonMaxSuppression())
}
