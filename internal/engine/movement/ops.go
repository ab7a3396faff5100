package movement

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(tensors(slices.Concat(
		views(),
		sizes(),
		transposes(),
		joins(),
		cuts(),
		repeats(),
		blocks(),
		gathers(),
		fills(),
		scatters(),
		pads(),
		choices(),
		ranges(),
		columns(),
	)), sequences(), optionals(), boxes())
}
