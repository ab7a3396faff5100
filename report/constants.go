package report

import (
	"iter"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// constants are the constant expressions of a model.
type constants struct {
	folded  map[*ir.Node]expression // that the runtime folds
	between map[*ir.Node]bool       // isolated nodes
	// Folded nodes that change the number of elements and may still be followed, over all constants.
	steps int
}

// An expression is the output of a folded node.
type expression struct {
	elems  int64   // negative if unknown
	matrix []int64 // shape, nil if it is not the cast or transpose of a constant matrix
}

// stepsPerNode bounds how often each node is followed from constants: with many constants in one expression, time would
// grow with the square of their number. Sparse forms follow each node from up to four.
const stepsPerNode = 16

// newConstants finds the expressions of m from the constants on, without recursion: chains may have millions of nodes.
func newConstants(m *ir.Model) *constants {
	c := &constants{folded: map[*ir.Node]expression{}, between: map[*ir.Node]bool{}}
	for n := range constantNodes(m, mayFold) {
		c.folded[n] = c.expression(n)
	}
	for range m.Nodes() {
		c.steps += stepsPerNode
	}
	return c
}

// constantNodes ranges over the accepted nodes of which all inputs are constants or outputs of such nodes, producers
// before consumers.
func constantNodes(m *ir.Model, accepted func(*ir.Node) bool) iter.Seq[*ir.Node] {
	return func(yield func(*ir.Node) bool) {
		// Kahn's algorithm: a node is ready once all of its variable inputs have been yielded.
		missing := map[*ir.Node]int{} // inputs of consumers of these nodes
		var ready []*ir.Node
		for n := range m.Nodes() {
			if variables(n) == 0 && accepted(n) {
				ready = append(ready, n)
			}
		}
		for len(ready) > 0 {
			n := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			if !yield(n) {
				return
			}
			for _, u := range n.Outputs[0].Uses() {
				if u.Node == nil || !accepted(u.Node) {
					continue
				}
				if _, known := missing[u.Node]; !known {
					missing[u.Node] = variables(u.Node)
				}
				if missing[u.Node]--; missing[u.Node] == 0 {
					ready = append(ready, u.Node)
				}
			}
		}
	}
}

// variables is the number of inputs of n that are not constant.
func variables(n *ir.Node) int {
	count := 0
	for _, in := range n.Inputs() {
		if in != nil && in.Const == nil {
			count++
		}
	}
	return count
}

// mayFold reports whether the runtime folds n if all inputs are constant.
func mayFold(n *ir.Node) bool {
	return len(n.Inputs()) > 0 && ir.DefaultDomain(n.Op.Domain) && !operator.Of(n).HoldsQuantized() &&
		len(n.Outputs) == 1 &&
		n.Outputs[0] != nil
}

// folds reports whether all inputs of n are constant expressions, and the runtime folds n.
func (c *constants) folds(n *ir.Node) bool {
	_, folded := c.folded[n]
	return folded
}

// foldable reports whether the runtime folds v into a constant.
func (c *constants) foldable(v *ir.Value) bool {
	return v.Const != nil || c.folds(v.Producer())
}

// expression is the output of n, whose inputs are known.
func (c *constants) expression(n *ir.Node) expression {
	e := expression{elems: -1}
	switch facts := operator.Of(n); {
	case n.Op.Is("Cast"), facts.Move.Keeps():
		e.elems = c.elems(n.Input(0))
	case arithmetic(n, facts):
		if a, b := c.elems(n.Input(0)), c.elems(n.Input(1)); min(a, b) >= 0 {
			e.elems = max(a, b)
		}
	}
	switch matrix := c.matrix(n.Input(0)); {
	case n.Op.Is("Cast"):
		e.matrix = matrix
	case n.Op.Is("Transpose") && matrix != nil:
		e.matrix = []int64{matrix[1], matrix[0]}
	}
	return e
}

// elems is the number of elements of the constant expression v, negative if unknown.
func (c *constants) elems(v *ir.Value) int64 {
	switch {
	case v == nil:
		return -1
	case v.Const != nil:
		return v.Const.Elems()
	}
	return c.folded[v.Producer()].elems
}

// matrix is the shape of the constant expression v, a matrix that is cast or transposed; nil for others.
func (c *constants) matrix(v *ir.Value) []int64 {
	switch {
	case v == nil:
		return nil
	case v.Const == nil:
		return c.folded[v.Producer()].matrix
	case len(v.Const.Shape) != 2:
		return nil
	}
	return v.Const.Shape
}

// arithmetic reports whether n computes elements of the type of its two inputs.
func arithmetic(n *ir.Node, f *operator.Facts) bool {
	return f.Elementwise == operator.Broadcasts && !f.Predicate && len(n.Inputs()) == 2
}

// isolated reports whether n, which has a float16 kernel, is between nodes without one: then the runtime computes it in
// float32, too.
func (c *constants) isolated(n *ir.Node) bool {
	between, known := c.between[n]
	if !known {
		between = c.isBetween(n)
		c.between[n] = between
	}
	return between
}

func (c *constants) isBetween(n *ir.Node) bool {
	edges := 0
	for i, in := range n.Inputs() {
		if constant := in == nil || in.Const != nil || in.Producer() == nil || c.folds(in.Producer()); constant {
			continue
		}
		edges++
		if moved := i == 0 || operator.Of(n).MovesInput(i); moved && float16Passes(in.Producer()) {
			return false
		}
	}
	for _, u := range n.Outputs[0].Uses() {
		if u.Node == nil || float16Passes(u.Node) {
			return false
		}
	}
	return edges > 0
}
