package ir

import "iter"

// Subgraphs ranges over the graphs that n's attributes hold, not deeper ones.
func (n *Node) Subgraphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		for _, a := range n.Attrs {
			if a.Graph != nil && !yield(a.Graph) {
				return
			}
			for _, g := range a.Graphs {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// Graphs ranges over every graph of m: the main graph, function bodies in file
// order, and each one's subgraphs right after it, depth first.
func (m *Model) Graphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		if !m.Graph.all(yield) {
			return
		}
		for _, f := range m.Functions {
			if !f.Body.all(yield) {
				return
			}
		}
	}
}

func (g *Graph) all(yield func(*Graph) bool) bool {
	if !yield(g) {
		return false
	}
	for n := range g.Nodes() {
		for s := range n.Subgraphs() {
			if !s.all(yield) {
				return false
			}
		}
	}
	return true
}

// Nodes ranges over every node of m, graph by graph as Graphs orders them.
func (m *Model) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for g := range m.Graphs() {
			for n := range g.Nodes() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// Values ranges over every value that is an input, a constant, a node's output or
// read by something; values may repeat.
func (m *Model) Values() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for g := range m.Graphs() {
			if !g.values(yield) {
				return
			}
		}
	}
}

func (g *Graph) values(yield func(*Value) bool) bool {
	for _, vs := range [][]*Value{g.Inputs, g.Consts(), g.Outputs} {
		if !each(vs, yield) {
			return false
		}
	}
	for n := range g.Nodes() {
		if !each(n.inputs, yield) || !each(n.Outputs, yield) {
			return false
		}
	}
	return true
}

// reads ranges over what n and the nodes in its subgraphs read, values of those
// subgraphs included.
func (n *Node) reads(yield func(*Value) bool) { n.eachRead(yield) }

func (n *Node) eachRead(yield func(*Value) bool) bool {
	if !each(n.inputs, yield) {
		return false
	}
	for g := range n.Subgraphs() {
		if !each(g.Outputs, yield) {
			return false
		}
		for m := range g.Nodes() {
			if !m.eachRead(yield) {
				return false
			}
		}
	}
	return true
}

func each(vs []*Value, yield func(*Value) bool) bool {
	for _, v := range vs {
		if v != nil && !yield(v) {
			return false
		}
	}
	return true
}

// encloses reports whether g is h or a graph around it, so that h may read g's values.
func (g *Graph) encloses(h *Graph) bool {
	for ; h != nil; h = h.Outer {
		if h == g {
			return true
		}
	}
	return false
}
