package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// shapes reads shapes, axes and indices from attributes and constants of nodes, and writes them.
type shapes struct {
	step     *pass.Step
	resolved map[*ir.Value][]ir.Dim // sizes of what Reshape and Expand make
	computed map[*ir.Value][]size   // elements of shapes
}
