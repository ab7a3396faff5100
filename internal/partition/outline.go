package partition

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// An outline is the main graph of a model for partitioning: the nodes that depend on inputs,
// in topological order. Nodes that depend on constants only are duplicated into every stage that
// needs their results, like constants.
type outline struct {
	graph         *ir.Graph
	order         []*ir.Node               // all nodes
	nodes         []*ir.Node               // those that are partitioned
	at            map[*ir.Node]int         // their positions
	consts        map[*ir.Node][]*ir.Value // constants that each node needs, in order of use
	constantNodes map[*ir.Node][]*ir.Node  // constant-only nodes that each node needs, in order
	last          map[*ir.Value]int        // index of the last consumer of a value; number of nodes for model outputs
}

// newOutline returns an error for cyclic graphs.
func newOutline(g *ir.Graph) (*outline, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	o := &outline{graph: g, order: order, at: map[*ir.Node]int{}, last: map[*ir.Value]int{}}
	o.consts, o.constantNodes = map[*ir.Node][]*ir.Value{}, map[*ir.Node][]*ir.Node{}
	for _, n := range order {
		// In topological order, so that what n reads has been decided before.
		if constant := o.constants(n); constant {
			continue
		}
		o.at[n] = len(o.nodes)
		o.nodes = append(o.nodes, n)
		for v := range reads(n) {
			o.last[v] = max(o.last[v], o.at[n])
		}
	}
	for _, v := range g.Outputs {
		o.last[v] = len(o.nodes)
	}
	return o, nil
}

// maxAside is the maximum number of nodes of an expression of constants that is duplicated. Those after it are
// partitioned like others: lists of all constants in a long expression would have the square of its length.
const maxAside = 100

// constants records the constants that n needs, and reports whether n needs only constants.
func (o *outline) constants(n *ir.Node) bool {
	constant := foldable(n)
	var consts ordered[*ir.Value]
	var aside ordered[*ir.Node]
	for v := range reads(n) {
		from := v.Producer()
		switch {
		case v.Const != nil:
			consts.add(v)
		case from != nil && o.isAside(from):
			aside.add(o.constantNodes[from]...)
			aside.add(from)
			consts.add(o.consts[from]...)
			constant = constant && len(aside.list) < maxAside
		default:
			constant = false
		}
	}
	o.consts[n], o.constantNodes[n] = consts.list, aside.list
	return constant
}

// isAside reports whether n, visited before, depends on constants only.
func (o *outline) isAside(n *ir.Node) bool {
	_, cut := o.at[n]
	return !cut
}

// foldable reports whether n is deterministic and can be duplicated: a standard ONNX operator
// without random numbers and subgraphs.
func foldable(n *ir.Node) bool {
	// Subgraphs may read other values, which the lists of n's inputs do not have.
	for range n.Subgraphs() {
		return false
	}
	return ir.DefaultDomain(n.Op.Domain) && !operator.Of(n).Random && len(n.Inputs()) > 0
}

// reads ranges over the values of n's graph that n reads, subgraphs included. Values may
// repeat.
func reads(n *ir.Node) func(yield func(*ir.Value) bool) {
	return func(yield func(*ir.Value) bool) { within(n, n.Graph(), yield) }
}

func within(n *ir.Node, g *ir.Graph, yield func(*ir.Value) bool) bool {
	each := func(vs []*ir.Value) bool {
		for _, v := range vs {
			if v != nil && v.Graph() == g && !yield(v) {
				return false
			}
		}
		return true
	}
	if !each(n.Inputs()) {
		return false
	}
	for sub := range n.Subgraphs() {
		if !each(sub.Outputs) {
			return false
		}
		for inner := range sub.Nodes() {
			if !within(inner, g, yield) {
				return false
			}
		}
	}
	return true
}

// laterOutputs are the outputs of node i with later consumers.
func (o *outline) laterOutputs(i int) []*ir.Value {
	var vs []*ir.Value
	for _, v := range o.nodes[i].Outputs {
		if v != nil && o.last[v] > i {
			vs = append(vs, v)
		}
	}
	return vs
}

// A hop is a value that one stage produces and a later one consumes.
type hop struct {
	value       *ir.Value
	first, last int // producer and last consumer
}

// hops are the node outputs with consumers, model outputs included, in order of their producers. A hop crosses
// a cut before a node if it is produced before the node and last consumed at or after it.
func (o *outline) hops() []hop {
	var hs []hop
	for i := range o.nodes {
		for _, v := range o.laterOutputs(i) {
			hs = append(hs, hop{v, i, o.lastConsumer(v)})
		}
	}
	return hs
}

// lastConsumer is the last consumer of v, its producer if there is none.
func (o *outline) lastConsumer(v *ir.Value) int {
	last := o.at[v.Producer()]
	for _, u := range v.Uses() {
		if n := o.root(u); n != nil {
			last = max(last, o.at[n])
		}
	}
	return last
}

// root is the node of the main graph that contains u, nil for a model output.
func (o *outline) root(u ir.Use) *ir.Node {
	g := u.Graph
	if u.Node != nil {
		if g = u.Node.Graph(); g == o.graph {
			return u.Node
		}
	}
	for ; g != o.graph; g = g.Outer {
		if g.Outer == o.graph {
			return g.Owner
		}
	}
	return nil
}
