package train

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// domain is the domain of all operators of this package.
const domain = "mcompress"

// Ops returns the operators of this package.
func Ops() []op.Op {
	rows := slices.Concat(rowLosses(), pointLosses(), updates(), sums(), dropouts(), straightThrough(),
		sharedWeights(), offloads(), halves(), quantizedActivations())
	for i := range rows {
		rows[i].Domain, rows[i].Since = domain, 1
	}
	return rows
}
