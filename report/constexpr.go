package report

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A subtree is a constant expression: the nodes and constants that an input is computed from.
type subtree struct {
	leaves []*ir.Value
	nodes  []*ir.Node
}

// walk reports whether v depends on constants alone. An expression may be as long as the graph, so that it does not
// recurse.
func (s *subtree) walk(v *ir.Value) bool {
	if v == nil {
		return false
	}
	leaves, nodes := map[*ir.Value]bool{}, map[*ir.Node]bool{}
	for pending := []*ir.Value{v}; len(pending) > 0; {
		v := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if v.Const != nil {
			if !leaves[v] {
				leaves[v] = true
				s.leaves = append(s.leaves, v)
			}
			continue
		}
		n := v.Producer()
		if n == nil || len(n.Inputs()) == 0 {
			return false
		}
		if nodes[n] {
			continue
		}
		nodes[n] = true
		s.nodes = append(s.nodes, n)
		// Last in, first out: inputs are visited in their order.
		for _, in := range slices.Backward(n.Inputs()) {
			if in != nil {
				pending = append(pending, in)
			}
		}
	}
	return true
}

// form is the form of s at run time: constant expressions are folded into a dense
// tensor, DequantizeLinear is not.
func (s *subtree) form() pass.Form {
	switch {
	case slices.ContainsFunc(s.nodes, func(n *ir.Node) bool { return n.Op.Is("DequantizeLinear") }):
		return pass.Dequantize
	case len(s.nodes) > 0:
		return pass.Form{Name: "constant-expression", Dense: true}
	}
	return pass.Form{Name: "constant"}
}
