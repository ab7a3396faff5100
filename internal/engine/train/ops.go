package train

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// domain is that of all rows of this package.
const domain = "mcompress"

// Ops are the rows of this family.
func Ops() []op.Op {
	rows := slices.Concat(rowLosses(), pointLosses(), updates(), sums(), dropouts(), augments(), roundings(), offloads(), halves())
	for i := range rows {
		rows[i].Domain, rows[i].Since = domain, 1
	}
	return rows
}
