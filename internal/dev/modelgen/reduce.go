package modelgen

import (
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Reductions are models that are smaller or simpler than m, the ones that remove most first. They need not be valid.
func Reductions(m *Model) iter.Seq[*Model] {
	return func(yield func(*Model) bool) {
		for _, reduce := range []func(*Model, func(*Model) bool) bool{oneOutput, earlierOutput, laterInput, bypass,
			simpleConstants} {
			if !reduce(m, yield) {
				return
			}
		}
	}
}

// Size is what a reduction decreases: nodes, outputs, and constants that are not plain.
func (m *Model) Size() int {
	size := 8 * len(m.Functions)
	m.graphs(func(g *Graph) {
		size += 8*len(g.Nodes) + 4*len(g.Outputs) + 2*len(g.Inputs)
		for _, t := range g.Constants {
			size += 2
			if t.Field != Raw {
				size++
			}
		}
	})
	return size
}

// prune removes nodes, constants, functions and inputs that no output needs.
func (m *Model) prune() {
	g := m.Graph
	for {
		used := map[string]bool{}
		for _, v := range g.Outputs {
			used[v.Name] = true
		}
		for _, n := range g.Nodes {
			for _, s := range n.reads() {
				used[s] = true
			}
		}
		before := len(g.Nodes)
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool {
			return !slices.ContainsFunc(n.Out, func(s string) bool { return used[s] })
		})
		g.Constants = slices.DeleteFunc(g.Constants, func(t *Tensor) bool { return !used[t.Name] })
		called := map[string]bool{}
		call := func(list []*Node) {
			for _, n := range list {
				called[n.Op] = true
			}
		}
		m.graphs(func(g *Graph) { call(g.Nodes) })
		for _, f := range m.Functions {
			call(f.Nodes)
		}
		m.Functions = slices.DeleteFunc(m.Functions, func(f *Function) bool { return !called[f.Name] })
		inputs := m.Inputs
		m.Inputs = nil
		g.Inputs = slices.DeleteFunc(slices.Clone(g.Inputs), func(v Value) bool {
			t := inputs[0]
			inputs = inputs[1:]
			if used[v.Name] {
				m.Inputs = append(m.Inputs, t)
			}
			return !used[v.Name]
		})
		if len(g.Nodes) == before {
			return
		}
	}
}

func oneOutput(m *Model, yield func(*Model) bool) bool {
	for _, v := range m.Graph.Outputs {
		if len(m.Graph.Outputs) == 1 {
			break
		}
		c := m.Clone()
		c.Graph.Outputs = []Value{v}
		c.prune()
		if !yield(c) {
			return false
		}
	}
	return true
}

// earlierOutput makes a value between nodes the only output.
func earlierOutput(m *Model, yield func(*Model) bool) bool {
	for _, n := range m.Graph.Nodes {
		for _, s := range n.Out {
			v, known := m.types[s]
			if !known || n.Op == "Constant" || len(m.Graph.Outputs) == 1 && m.Graph.Outputs[0].Name == s {
				continue
			}
			c := m.Clone()
			c.Graph.Outputs = []Value{declared(v)}
			c.prune()
			if !yield(c) {
				return false
			}
		}
	}
	return true
}

// laterInput makes a value of floats between nodes an input of the model.
func laterInput(m *Model, yield func(*Model) bool) bool {
	for i := len(m.Graph.Nodes) - 1; i >= 0; i-- {
		n := m.Graph.Nodes[i]
		if len(n.In) == 0 || len(n.Out) != 1 {
			continue
		}
		v, known := m.types[n.Out[0]]
		if !known || !v.typ.IsFloat() || slices.Contains(v.shape, -1) ||
			slices.ContainsFunc(m.Graph.Outputs, func(o Value) bool { return o.Name == v.name }) {
			continue
		}
		c := m.Clone()
		c.Graph.Nodes = slices.Delete(c.Graph.Nodes, i, i+1)
		c.Graph.Inputs = append(c.Graph.Inputs, declared(v))
		c.Inputs = append(c.Inputs, tensorOf("", v.typ, v.shape, normal(rand.New(rand.NewPCG(1, 1)), 1)))
		c.prune()
		if !yield(c) {
			return false
		}
	}
	return true
}

// bypass replaces a node by its first input of the same type and shape.
func bypass(m *Model, yield func(*Model) bool) bool {
	for i, n := range m.Graph.Nodes {
		if len(n.In) == 0 || len(n.Out) != 1 {
			continue
		}
		out, known := m.types[n.Out[0]]
		in, there := m.types[n.In[0]]
		if !known || !there || in.typ != out.typ || !slices.Equal(in.shape, out.shape) ||
			slices.ContainsFunc(m.Graph.Outputs, func(o Value) bool { return o.Name == out.name }) {
			continue
		}
		c := m.Clone()
		c.Graph.Nodes = slices.Delete(c.Graph.Nodes, i, i+1)
		c.replace(out.name, in.name)
		c.prune()
		if !yield(c) {
			return false
		}
	}
	return true
}

// replace makes readers of a value read another one.
func (m *Model) replace(from, to string) {
	m.graphs(func(g *Graph) {
		for _, n := range g.Nodes {
			for i, s := range n.In {
				if s == from {
					n.In[i] = to
				}
			}
		}
	})
}

// simpleConstants stores all constants, or one, as raw_data, or fills one with normal numbers.
func simpleConstants(m *Model, yield func(*Model) bool) bool {
	all := m.Clone()
	if inline(nil, all) && !yield(all) {
		return false
	}
	for i, t := range m.Graph.Constants {
		if t.Field != Raw {
			c := m.Clone()
			c.Graph.Constants[i].Field = Raw
			if !yield(c) {
				return false
			}
		}
		if t.Type == ir.Int64 && t.Input && m.IR >= 4 {
			c := m.Clone()
			c.Graph.Constants[i].Input = false
			if !yield(c) {
				return false
			}
		}
	}
	return true
}
