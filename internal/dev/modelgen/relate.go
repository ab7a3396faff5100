package modelgen

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A relation makes an equivalent model, whose constants of some size are the same ones; false if the model has no place
// for it.
type relation struct {
	name  string
	apply func(*rand.Rand, *Model) bool
}

var relations = []relation{
	{"renamed values", rename},
	{"reordered nodes", reorder},
	{"weights behind Identity", behindIdentity},
	{"weights in Constant nodes", inConstants},
	{"external data split", splitExternal},
	{"data in the file", inline},
	{"one more output", oneMoreOutput},
	{"opset raised", raiseOpset},
}

// Relate returns an equivalent model and how it is made, or nil. The names of inputs and outputs stay.
func Relate(r *rand.Rand, m *Model) (string, *Model) {
	for range 10 {
		relation := relations[r.IntN(len(relations))]
		if c := m.Clone(); relation.apply(r, c) {
			return relation.name, c
		}
	}
	return "", nil
}

// renamed is another name of the same length, as sizes depend on it.
func renamed(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, name)
}

// rename gives every value but inputs and outputs of the model, and every node, another name.
func rename(_ *rand.Rand, m *Model) bool {
	keep := map[string]bool{"": true}
	for _, vs := range [][]Value{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range vs {
			keep[v.Name] = true
		}
	}
	for _, t := range m.Graph.Constants {
		keep[t.Name] = keep[t.Name] || t.Input
	}
	rename := func(names []string) {
		for i, s := range names {
			if !keep[s] {
				names[i] = renamed(s)
			}
		}
	}
	values := func(vs []Value) {
		for i, v := range vs {
			if !keep[v.Name] {
				vs[i].Name = renamed(v.Name)
			}
		}
	}
	nodes := func(ns []*Node) {
		for _, n := range ns {
			rename(n.In)
			rename(n.Out)
			n.Name = renamed(n.Name)
		}
	}
	m.graphs(func(g *Graph) {
		values(g.Inputs)
		values(g.Outputs)
		values(g.Infos)
		nodes(g.Nodes)
		for _, t := range g.Constants {
			if !keep[t.Name] {
				t.Name = renamed(t.Name)
			}
		}
	})
	for _, f := range m.Functions {
		f.In, f.Out = slices.Clone(f.In), slices.Clone(f.Out)
		rename(f.In)
		rename(f.Out)
		nodes(f.Nodes)
	}
	return true
}

// reads are the values that n reads, those of its bodies included.
func (n *Node) reads() []string {
	list := slices.Clone(n.In)
	for _, a := range n.Attrs {
		if g, ok := a.Value.(*Graph); ok {
			for _, inner := range g.Nodes {
				list = append(list, inner.reads()...)
			}
			for _, v := range g.Outputs {
				list = append(list, v.Name)
			}
		}
	}
	return list
}

// reorder sorts the nodes topologically in another order, and the constants.
func reorder(r *rand.Rand, m *Model) bool {
	g := m.Graph
	made := map[string]bool{} // by nodes
	for _, n := range g.Nodes {
		for _, s := range n.Out {
			made[s] = s != "" // of an omitted output
		}
	}
	rest, done := slices.Clone(g.Nodes), map[string]bool{}
	g.Nodes = nil
	for len(rest) > 0 {
		var ready []int
		for i, n := range rest {
			if !slices.ContainsFunc(n.reads(), func(s string) bool { return made[s] && !done[s] }) {
				ready = append(ready, i)
			}
		}
		i := ready[r.IntN(len(ready))]
		for _, s := range rest[i].Out {
			done[s] = true
		}
		g.Nodes = append(g.Nodes, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	r.Shuffle(len(g.Constants), func(i, j int) { g.Constants[i], g.Constants[j] = g.Constants[j], g.Constants[i] })
	return true
}

// weights are initializers of floats of some size that callers cannot replace.
func (g *Graph) weights() []*Tensor {
	var list []*Tensor
	for _, t := range g.Constants {
		if t.Type != ir.Int64 && t.elems() >= 16 && !t.Input && t.Field < Sparse {
			list = append(list, t)
		}
	}
	return list
}

func behindIdentity(_ *rand.Rand, m *Model) bool {
	g := m.Graph
	var before []*Node
	for _, t := range g.weights() {
		if t.Type.Bits() < 8 {
			continue // ONNX Runtime 1.31 has no Identity of 4 bits
		}
		copied := t.Name + "_copy"
		m.replace(t.Name, copied)
		before = append(before, &Node{Name: "Identity_" + t.Name, Op: "Identity", In: []string{t.Name},
			Out: []string{copied}})
	}
	g.Nodes = append(before, g.Nodes...)
	return len(before) > 0
}

func inConstants(_ *rand.Rand, m *Model) bool {
	g := m.Graph
	var before []*Node
	for _, t := range g.weights() {
		if m.Opset < 9 && !t.Type.IsFloat() {
			continue // Constant has floats only
		}
		t.Field %= External
		before = append(before, &Node{Name: "Constant_" + t.Name, Op: "Constant", Out: []string{t.Name},
			Attrs: []Attr{valueAttr("value", t)}})
		g.Constants = slices.DeleteFunc(g.Constants, func(c *Tensor) bool { return c == t })
	}
	g.Nodes = append(before, g.Nodes...)
	return len(before) > 0
}

func splitExternal(r *rand.Rand, m *Model) bool {
	list := m.Graph.weights()
	for _, t := range list {
		t.Field, t.File = External, r.IntN(4)
	}
	return len(list) > 0
}

func inline(_ *rand.Rand, m *Model) bool {
	changed := false
	m.graphs(func(g *Graph) {
		for _, t := range g.Constants {
			if t.Field < Sparse { // that a constant is sparse is a fact of the ledger
				changed = changed || t.Field != Raw
				t.Field = Raw
			}
		}
	})
	return changed
}

func oneMoreOutput(_ *rand.Rand, m *Model) bool {
	if len(m.Graph.Inputs) == 0 {
		return false
	}
	in := m.Graph.Inputs[0]
	out := in
	out.Name = "one_more"
	m.Graph.Nodes = append(m.Graph.Nodes, &Node{Name: "Identity_one_more", Op: "Identity", In: []string{in.Name},
		Out: []string{out.Name}})
	m.Graph.Outputs = append(m.Graph.Outputs, out)
	return true
}

// raised are opsets between which no operator changes that the generator writes.
var raised = map[int64]int64{7: 8, 11: 12, 14: 16, 15: 16, 18: 19, 21: 22, 24: 26, 25: 26}

func raiseOpset(_ *rand.Rand, m *Model) bool {
	to := raised[m.Opset]
	if to > 0 {
		m.Opset = to
	}
	return to > 0
}
