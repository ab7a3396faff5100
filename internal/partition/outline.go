package partition

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An outline is the main graph of a model as cuts see it: nodes that compute with what a run is
// given, in topological order. Nodes that compute with constants alone go wherever their
// results are needed, as the constants do.
type outline struct {
	graph  *ir.Graph
	order  []*ir.Node               // all nodes
	nodes  []*ir.Node               // those that are cut
	at     map[*ir.Node]int         // their positions
	consts map[*ir.Node][]*ir.Value // what each of them needs, in order of use
	aside  map[*ir.Node][]*ir.Node  // the nodes of constants behind that, in order
	last   map[*ir.Value]int        // the last of them that reads a value; their number for the model's outputs
}

// newOutline fails on a graph that goes in circles.
func newOutline(g *ir.Graph) (*outline, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	o := &outline{graph: g, order: order, at: map[*ir.Node]int{}, last: map[*ir.Value]int{}}
	o.consts, o.aside = map[*ir.Node][]*ir.Value{}, map[*ir.Node][]*ir.Node{}
	for _, n := range order {
		if constant := o.behind(n); constant {
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

// behind notes which constants n needs, and reports whether it needs nothing else.
func (o *outline) behind(n *ir.Node) bool {
	constant := foldable(n)
	for v := range reads(n) {
		from := v.Producer()
		switch {
		case v.Const != nil:
			o.consts[n] = add(o.consts[n], v)
		case from != nil && o.isAside(from):
			o.aside[n] = add(add(o.aside[n], o.aside[from]...), from)
			o.consts[n] = add(o.consts[n], o.consts[from]...)
		default:
			constant = false
		}
	}
	return constant
}

// isAside reports whether n, which was looked at, computes with constants alone.
func (o *outline) isAside(n *ir.Node) bool {
	_, cut := o.at[n]
	return !cut
}

func add[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// foldable reports whether n gives the same wherever it stands: an operator of ONNX's own that
// draws no numbers and has no body.
func foldable(n *ir.Node) bool {
	switch n.Op.Type {
	case "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout":
		return false
	}
	for range n.Subgraphs() {
		return false
	}
	return ir.DefaultDomain(n.Op.Domain) && len(n.Inputs()) > 0
}

// reads ranges over the values of n's graph that n reads, in its subgraphs too. One may come
// several times.
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

// made are the values that node i makes and somebody reads behind it.
func (o *outline) made(i int) []*ir.Value {
	var vs []*ir.Value
	for _, v := range o.nodes[i].Outputs {
		if v != nil && o.last[v] > i {
			vs = append(vs, v)
		}
	}
	return vs
}

// A hop is a value that one stage makes and a later one reads.
type hop struct {
	value       *ir.Value
	first, last int // the node that makes it, and the last that reads it
}

// hops are the values that nodes make for others or for the caller, in order of making. A cut in front of
// a node is crossed by those that were made before it and end there or behind it.
func (o *outline) hops() []hop {
	var hs []hop
	for i := range o.nodes {
		for _, v := range o.made(i) {
			hs = append(hs, hop{v, i, o.lastReader(v)})
		}
	}
	return hs
}

// lastReader is the last node that reads v, the one that makes it if there is none.
func (o *outline) lastReader(v *ir.Value) int {
	last := o.at[v.Producer()]
	for _, u := range v.Uses() {
		if n := o.root(u); n != nil {
			last = max(last, o.at[n])
		}
	}
	return last
}

// root is the node of the main graph that u belongs to, nil for an output of the model.
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
