package operator

import (
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// Parse is the operator of a name.
func Parse(name string) ir.OpID {
	i := strings.LastIndex(name, ".")
	return ir.OpID{Domain: name[:max(i, 0)], Type: name[i+1:]}
}

// Columns are the lists of each column.
func Columns() map[string][]string {
	columns := map[string][]string{
		"variadic": variadic, "commutative": commutative, "nonlinearities": nonlinearities, "unary": unary,
		"broadcasts": broadcasts,
		"randoms":    randoms, "zeroGradients": zeroGradients, "homogeneous": homogeneous, "selects": selects,
		"rectifiers": rectifiers, "keepMeans": keepMeans,
	}
	join(columns, "moves", moves)
	join(columns, "affine", affine)
	join(columns, "elemAttrs", elemAttrs)
	join(columns, "saves", saves)
	join(columns, "precisions", precisions)
	return columns
}

func join[T comparable](columns map[string][]string, name string, lists map[T][]string) {
	for _, list := range lists {
		columns[name] = append(columns[name], list...)
	}
}
