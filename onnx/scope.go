package onnx

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A scope resolves names to values while a graph is built. Names produced twice are
// real: a use means the last definition before it, or else the first one after it.
type scope struct {
	g          *ir.Graph
	outer      *scope
	first      map[string]*ir.Value // first definition anywhere in the graph
	now        map[string]*ir.Value // of inputs and of ambiguous names, as of the node being read
	unproduced map[string]*ir.Value // read but made by nothing
	ahead      bool                 // something is read before it is made
}

// define adds a definition of name; a second one marks both as ambiguous.
func (s *scope) define(name string) *ir.Value {
	v := s.g.AddValue(name)
	if old := s.first[name]; old != nil {
		// The initializer is what the name means until a node redefines it.
		if old.Const != nil && !old.Ambiguous {
			s.now[name] = old
		}
		old.Ambiguous, v.Ambiguous = true, true
		return v
	}
	s.first[name] = v
	return v
}

// resolve returns the value that name means here; a name that nothing makes gets a
// value without producer, which ir's Verify reports.
func (s *scope) resolve(name string) *ir.Value {
	if name == "" {
		return nil
	}
	for t := s; t != nil; t = t.outer {
		v := t.first[name]
		if v == nil {
			continue
		}
		// A name with one definition means the same everywhere, whatever the order of nodes.
		if made := v.Const != nil || v.Producer() != nil; made && !v.Ambiguous {
			return v
		}
		if now := t.now[name]; now != nil {
			return now
		}
		t.ahead = true
		return v
	}
	if s.unproduced[name] == nil {
		s.unproduced[name] = s.g.AddValue(name)
	}
	return s.unproduced[name]
}

// build links g's names into into: inputs and constants first, then what nodes
// make, then what they read.
func (d *decoder) build(into *ir.Graph, g *protoGraph, outer *scope, at int64) error {
	x := &graphExtra{inputs: make(map[string]info, len(g.inputs)), outputs: make(map[string]info, len(g.outputs)), rest: g.rest}
	into.Extra = x
	s := &scope{
		g:          into,
		outer:      outer,
		first:      make(map[string]*ir.Value, g.definitions()),
		now:        map[string]*ir.Value{},
		unproduced: map[string]*ir.Value{},
	}
	if err := d.buildInputs(s, g, x, at); err != nil {
		return err
	}
	if err := d.buildConsts(s, g, at); err != nil {
		return err
	}
	s.defineOutputs(g)
	for p := range g.nodes.all {
		if err := d.buildNode(s, p, x); err != nil {
			return err
		}
	}
	if err := s.acyclic(); err != nil {
		return d.fail(at, err.Error())
	}
	// After all nodes: the outputs of a graph are the last definitions of their names.
	s.buildOutputs(g, x)
	for _, i := range g.infos {
		v := s.resolve(i.name)
		if v == nil {
			v = into.AddValue(i.name)
		}
		if v.Type == nil {
			v.Type = i.typ
		}
		x.infos = append(x.infos, info{v, v.Type, i.infoSource})
	}
	// A type may be stated in either place, so the last one counts.
	for _, is := range []map[string]info{x.inputs, x.outputs} {
		for name, i := range is {
			i.typ = i.value.Type
			is[name] = i
		}
	}
	return nil
}

// definitions is the number of names that g defines, some of them perhaps twice.
func (g *protoGraph) definitions() int {
	n := len(g.inputs) + len(g.params) + len(g.tensors) + len(g.sparse)
	for p := range g.nodes.all {
		n += len(p.out())
	}
	return n
}

// acyclic reports a cycle of nodes. A graph in topological order has none.
func (s *scope) acyclic() error {
	if !s.ahead {
		return nil
	}
	if _, err := s.g.Order(); err != nil {
		return fmt.Errorf("graph %q: %w", s.g.Name, err)
	}
	return nil
}

func (d *decoder) buildInputs(s *scope, g *protoGraph, x *graphExtra, at int64) error {
	for _, i := range g.inputs {
		if s.first[i.name] != nil {
			return d.fail(at, fmt.Sprintf("two graph inputs are called %q", i.name))
		}
		v := s.define(i.name)
		v.Type = i.typ
		s.now[i.name] = v
		s.g.Inputs = append(s.g.Inputs, v)
		x.inputs[i.name] = info{v, i.typ, i.infoSource}
	}
	for _, name := range g.params {
		if s.first[name] != nil {
			return d.fail(at, fmt.Sprintf("two function inputs are called %q", name))
		}
		v := s.define(name)
		s.now[name] = v
		s.g.Inputs = append(s.g.Inputs, v)
	}
	return nil
}

func (d *decoder) buildConsts(s *scope, g *protoGraph, at int64) error {
	for _, t := range g.tensors {
		if _, err := d.buildConst(s, t, at); err != nil {
			return err
		}
	}
	for _, sp := range g.sparse {
		v, err := d.buildConst(s, sp.tensor, at)
		if err != nil {
			return err
		}
		v.Extra = &sparseInit{sp.tensor, sp.raw}
	}
	return nil
}

// buildConst defines an initializer, or sets the default value of a graph input.
func (d *decoder) buildConst(s *scope, t *ir.Tensor, at int64) (*ir.Value, error) {
	if err := d.interrupted(); err != nil {
		return nil, err
	}
	v := s.first[t.Name]
	if v != nil && v.Const != nil {
		return nil, d.fail(at, fmt.Sprintf("two initializers are called %q", t.Name))
	}
	if v == nil {
		v = s.define(t.Name)
	}
	v.SetConst(t)
	return v, nil
}

// defineOutputs makes the values of every node before any is read, as a node may
// read what a later one makes. They have no producers yet: what a node reads depends on what was made before it.
func (s *scope) defineOutputs(g *protoGraph) {
	for p := range g.nodes.all {
		p.node.Outputs = make([]*ir.Value, len(p.out()))
		for j, name := range p.out() {
			if name != "" {
				p.node.Outputs[j] = s.define(name)
			}
		}
	}
}

func (d *decoder) buildNode(s *scope, p *protoNode, x *graphExtra) error {
	if err := d.interrupted(); err != nil {
		return err
	}
	d.enter(p)
	defer d.leave()
	n := p.node
	if t := p.lift(); t != nil {
		v := n.Outputs[0]
		n.Outputs = nil // it is no node of the graph
		s.lift(p, v, t, x)
		return nil
	}
	d.inputs = d.inputs[:0]
	for _, name := range p.in() {
		d.inputs = append(d.inputs, s.resolve(name))
	}
	s.g.Adopt(n, d.inputs)
	s.g.Append(n)
	for _, sub := range p.subs() {
		h := ir.NewSubgraph(s.g, n)
		if err := d.graph(h, sub.pieces, s); err != nil {
			return err
		}
		sub.attach(h)
	}
	n.SetOutputs(n.Outputs...) // its subgraphs cannot read them
	s.advance(n.Outputs)
	return nil
}

// lift makes the Constant node p's output a constant of the graph.
func (s *scope) lift(p *protoNode, v *ir.Value, t *ir.Tensor, x *graphExtra) {
	v.SetConst(t)
	c := &constNode{value: v, node: p.node, tensor: t, after: s.g.Last()}
	v.Extra = c
	x.lifted = append(x.lifted, c)
	s.advance([]*ir.Value{v})
}

func (s *scope) advance(outs []*ir.Value) {
	for _, v := range outs {
		if v != nil && v.Ambiguous {
			s.now[v.Name] = v
		}
	}
}

func (s *scope) buildOutputs(g *protoGraph, x *graphExtra) {
	for _, i := range g.outputs {
		v := s.resolve(i.name)
		if v == nil {
			v = s.g.AddValue("")
		}
		if v.Type == nil {
			v.Type = i.typ
		}
		x.outputs[i.name] = info{v, v.Type, i.infoSource}
		s.g.AddOutput(v)
	}
	for _, name := range g.results {
		if v := s.resolve(name); v != nil {
			s.g.AddOutput(v)
		}
	}
}
