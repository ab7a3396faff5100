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

// walk reports whether v depends on constants alone.
func (s *subtree) walk(v *ir.Value) bool {
	if v == nil {
		return false
	}
	if v.Const != nil {
		if !slices.Contains(s.leaves, v) {
			s.leaves = append(s.leaves, v)
		}
		return true
	}
	n := v.Producer()
	if n == nil || len(n.Inputs()) == 0 {
		return false
	}
	if slices.Contains(s.nodes, n) {
		return true
	}
	s.nodes = append(s.nodes, n)
	for _, in := range n.Inputs() {
		if in != nil && !s.walk(in) {
			return false
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
