// Package reduce is the family of operators along axes: reductions, cumulative sums, normalizations, ArgMax and TopK,
// losses and optimizers.
//
// Sums of floats are computed in float64, in an order that depends on shapes alone. It must not know graphs, plans or
// other families.
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
