package opset

import (
	"slices"
	"strings"
)

// A lineage is one line of the default domain's history. Versions are ascending.
type lineage struct {
	name   string
	since  []int64
	breaks []int64 // those of since whose schema is not a superset of the one before
}

// lookup finds an operator of the default domain, in any of its versions.
func lookup(name string) (lineage, bool) {
	i, ok := slices.BinarySearchFunc(operators, name, func(o lineage, name string) int {
		return strings.Compare(o.name, name)
	})
	if !ok {
		return lineage{}, false
	}
	return operators[i], true
}

// IRVersion is the IR version that was released with an opset of the default
// domain; 0 if this package does not know the opset.
func IRVersion(opset int64) int64 {
	if opset < 1 || opset > Newest {
		return 0
	}
	return irVersions[opset-1]
}
