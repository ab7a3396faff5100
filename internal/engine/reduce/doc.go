// Package reduce is the family of operators that look along axes: reductions, sums of what
// came before, normalizations, searches and orders, losses and optimizers.
//
// Sums of floats are made in float64, in an order that depends on shapes alone. It must not
// know graphs, plans or other families.
package reduce

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// Ops are the rows of this family.
func Ops() []op.Op {
	return slices.Concat(
		reduceOps(), argOps(), cumulateOps(), topOps(), uniqueOps(), nonZeroOps(),
		softmaxOps(), rowNormOps(), embedOps(), channelOps(), batchOps(), lrnOps(), mvnOps(),
		detOps(), lossOps(), optimizerOps(),
	)
}
