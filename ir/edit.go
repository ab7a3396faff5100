package ir

import (
	"slices"
	"strconv"
)

// SetInput makes v the input i of n, absent where v is nil; it extends n's inputs
// if there are fewer.
func (n *Node) SetInput(i int, v *Value) {
	for len(n.inputs) <= i {
		n.inputs = append(n.inputs, nil)
	}
	use := Use{Node: n, Index: i}
	if old := n.inputs[i]; old != nil {
		old.dropUse(use)
	}
	n.inputs[i] = v
	if v != nil {
		v.uses = append(v.uses, use)
	}
}

// TrimInputs drops n's inputs from i on.
func (n *Node) TrimInputs(i int) {
	for j := i; j < len(n.inputs); j++ {
		n.SetInput(j, nil)
	}
	n.inputs = n.inputs[:min(i, len(n.inputs))]
}

// AddOutput makes v the next output of g.
func (g *Graph) AddOutput(v *Value) {
	v.uses = append(v.uses, Use{Graph: g, Index: len(g.Outputs)})
	g.Outputs = append(g.Outputs, v)
}

// SetOutputs makes vs all the outputs of g.
func (g *Graph) SetOutputs(vs ...*Value) {
	for i, v := range g.Outputs {
		v.dropUse(Use{Graph: g, Index: i})
	}
	g.Outputs = nil
	for _, v := range vs {
		g.AddOutput(v)
	}
}

func (v *Value) dropUse(u Use) {
	if i := slices.Index(v.uses, u); i >= 0 {
		v.uses = slices.Delete(v.uses, i, i+1)
	}
}

// ReplaceUses makes every consumer of v read w. A graph output keeps its name: w
// takes v's name over, and v gets w's.
func (v *Value) ReplaceUses(w *Value) {
	// The whole list at once: SetInput searches it for each use, which takes quadratic time for a value that every node
	// reads.
	uses, output := v.uses, false
	v.uses = nil
	for _, u := range uses {
		if u.Node == nil {
			u.Graph.Outputs[u.Index] = w
			output = true
			continue
		}
		u.Node.inputs[u.Index] = w
	}
	w.uses = append(w.uses, uses...)
	// The name of a graph output is an interface of the model, which callers use.
	if output {
		v.Name, w.Name = w.Name, v.Name
		if w.Type == nil {
			w.Type = v.Type
		}
	}
}

// Remove removes n and its subgraphs from the graph. Its outputs must have
// no consumers left.
func (n *Node) Remove() {
	// Also what its subgraphs read: values around an If or Loop would keep uses that do not exist, and Drop would not
	// remove them.
	n.release()
	g := n.graph
	if n.prev == nil {
		g.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		g.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.graph, n.prev, n.next = nil, nil, nil
	for _, v := range n.Outputs {
		if v != nil {
			v.producer, v.removed = nil, true
		}
	}
}

// release makes n, and the nodes in the subgraphs it owns, read nothing. A subgraph
// that was handed to another node, its Owner, stays whole.
func (n *Node) release() {
	n.TrimInputs(0)
	for g := range n.Subgraphs() {
		if g.Owner != n {
			continue
		}
		for m := range g.Nodes() {
			m.release()
		}
		for i, v := range g.Outputs {
			v.dropUse(Use{Graph: g, Index: i})
		}
		g.Outputs = nil
	}
}

// Drop removes v if nothing reads it, and then whatever only it needed: the
// constant, or the node that makes it and what that node and its subgraphs read, in
// turn. Graph inputs stay, constants among them too.
func (v *Value) Drop() {
	// No recursion: a chain of a million nodes would need a stack of hundreds of megabytes.
	for stack := []*Value{v}; len(stack) > 0; {
		last := stack[len(stack)-1]
		stack = append(stack[:len(stack)-1], last.drop()...)
	}
}

// drop removes v, if nothing reads it, with the node that makes it, and returns what that node read, the first last.
func (v *Value) drop() []*Value {
	n := v.producer
	switch {
	case len(v.uses) > 0:
		return nil
	case v.Const != nil:
		if !v.IsInput() {
			v.graph.RemoveConst(v)
		}
		return nil
	case n == nil || slices.ContainsFunc(n.Outputs, func(o *Value) bool { return o != nil && len(o.uses) > 0 }):
		return nil
	}
	// Before n is removed, which reads nothing then. Values of its subgraphs are removed with it.
	reads := slices.Collect(n.reads)
	n.Remove()
	reads = slices.DeleteFunc(reads, func(in *Value) bool { return in.graph.within(n) })
	slices.Reverse(reads)
	return reads
}

// within reports whether g is a subgraph of n, or inside one.
func (g *Graph) within(n *Node) bool {
	for ; g != nil; g = g.Outer {
		if g.Owner == n {
			return true
		}
	}
	return false
}

// RemoveConst removes the constant v from g. An input loses its default value. The time does not depend on the number
// of constants.
func (g *Graph) RemoveConst(v *Value) {
	if v.graph != g || v.Const == nil || v.removed {
		return
	}
	// Removed from the list by the next Consts, all at once: a search for each would take quadratic time.
	g.stale = true
	if v.IsInput() {
		v.Const = nil
		return
	}
	v.removed = true
}

// RemoveInput removes v from g's inputs; a constant stays an initializer.
func (g *Graph) RemoveInput(v *Value) {
	if i := slices.Index(g.Inputs, v); i >= 0 {
		g.Inputs = slices.Delete(g.Inputs, i, i+1)
	}
}

// freeName returns hint, or hint and the smallest number that no value has taken.
func (m *Model) freeName(hint string) string {
	if m.names == nil {
		m.names = map[string]int{}
		for v := range m.Values() {
			m.names[v.Name]++
		}
	}
	name := hint
	for m.names[name] > 0 {
		// The count of the hint is the next number to try: a thousand values of a name take a thousand steps.
		name = hint + strconv.Itoa(m.names[hint])
		m.names[hint]++
	}
	m.names[name]++
	return name
}
