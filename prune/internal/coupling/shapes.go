package coupling

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// shapes reads shapes, axes and indices from attributes and constants of nodes, and writes them.
type shapes struct {
	step     *pass.Step
	inferred opset.Shapes
	resolved map[*ir.Value][]ir.Dim // sizes of what Reshape and Expand make
	computed map[*ir.Value][]size   // elements of shapes
	origins  map[end]*ir.Value
}

// An end is an axis of a value, counted from the last one, -1.
type end struct {
	of *ir.Value
	at int
}

func newShapes(s *pass.Step) shapes {
	return shapes{s, opset.NewShapes(), map[*ir.Value][]ir.Dim{}, map[*ir.Value][]size{}, map[end]*ir.Value{}}
}

// rank is the number of v's dimensions, if that is known.
func (s shapes) rank(v *ir.Value) (int, bool) {
	dims, ok := s.inferred.Of(v)
	return len(dims), ok
}
