package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A flow is the nodes of a main graph that compute on codes: layers, and what moves or joins codes between them.
type quantizedGraph struct {
	c                *pass.Context
	layers           map[*ir.Node]*quantizedLayer
	integer          map[*ir.Node]bool
	fusesActivations bool // the ends of ranges stand for Relu and Clip
}

// newFlow finds the largest set of nodes such that what lies between layers reads nothing but codes, and makes
// some that others read: anything else would round without need.
func newQuantizedGraph(c *pass.Context, layers map[*ir.Node]*quantizedLayer, left map[*ir.Node]bool, absorbs bool) *quantizedGraph {
	f := &quantizedGraph{c: c, layers: layers, integer: map[*ir.Node]bool{}, fusesActivations: absorbs}
	var glue []*ir.Node
	for n := range c.Model.Graph.Nodes() {
		_, activations := activationRuleOf(n)
		if left[n] || layers[n] == nil && activations == nil {
			continue
		}
		f.integer[n] = true
		if layers[n] == nil {
			glue = append(glue, n)
		}
	}
	for again := true; again; {
		again = false
		for _, n := range glue {
			if f.integer[n] && !f.isConnected(n) {
				delete(f.integer, n)
				again = true
			}
		}
	}
	return f
}

// between reports whether n reads codes, and makes some that are read.
func (f *quantizedGraph) isConnected(n *ir.Node) bool {
	return !slices.ContainsFunc(f.reads(n), func(v *ir.Value) bool { return f.quantizedProducer(v) == nil }) && slices.ContainsFunc(f.outputs(n), f.readQuantized)
}

// reads are the activations that n reads as codes.
func (f *quantizedGraph) reads(n *ir.Node) []*ir.Value {
	if f.layers[n] != nil {
		return n.Inputs()[:1]
	}
	_, activations := activationRuleOf(n)
	return activations
}

// makes are the values whose codes n makes. A MatMul or Gemm makes floats where nobody wants codes.
func (f *quantizedGraph) makes(n *ir.Node) []*ir.Value {
	ends := f.outputs(n)
	if l := f.layers[n]; l != nil && l.consumer != nil && !f.readQuantized(ends[0]) {
		return nil
	}
	return ends
}

// ends are what n makes, behind the activation that its range stands for.
func (f *quantizedGraph) outputs(n *ir.Node) []*ir.Value {
	if a := f.fusedActivation(n); a != nil {
		return a.Outputs
	}
	return slices.DeleteFunc(slices.Clone(n.Outputs), func(v *ir.Value) bool { return v == nil })
}

// absorbed is the Relu or Clip behind n that does nothing which the ends of its range do not, nil if there is none.
func (f *quantizedGraph) fusedActivation(n *ir.Node) *ir.Node {
	if !f.fusesActivations || len(n.Outputs) != 1 || len(n.Outputs[0].Uses()) != 1 {
		return nil
	}
	if rule, _ := activationRuleOf(n); f.layers[n] == nil && rule.sameScale {
		return nil
	}
	a := n.Outputs[0].Uses()[0].Node
	if a == nil || a.Graph() != n.Graph() || !a.Op.Is("Relu") && !f.isFusibleClip(a, n.Outputs[0]) {
		return nil
	}
	if l := f.layers[n]; l != nil && l.consumer != nil && slices.ContainsFunc(a.Outputs[0].Uses(), func(u ir.Use) bool { return !f.readsQuantized(u) }) {
		return nil // its floats are worth more
	}
	return a
}

// clips reports whether n is a Clip of v by constants that zero lies between.
func (f *quantizedGraph) isFusibleClip(n *ir.Node, v *ir.Value) bool {
	if !n.Op.Is("Clip") || n.Input(0) != v {
		return false
	}
	lo, okLo := f.bound(n.Input(1))
	hi, okHi := f.bound(n.Input(2))
	return okLo && okHi && lo <= 0 && hi >= 0
}

// bound is an end of a Clip; an absent one is 0, as it bounds nothing.
func (f *quantizedGraph) bound(v *ir.Value) (float32, bool) {
	switch {
	case v == nil:
		return 0, true
	case v.Const == nil || v.Const.DType != ir.Float || v.Const.Elems() != 1:
		return 0, false
	}
	b, err := f.c.Eval.ReadAll(f.c, v.Const)
	if err != nil {
		return 0, false
	}
	return ir.View[float32](&ir.Array{DType: ir.Float, Data: b})[0], true
}

// maker is the node that makes v's codes, nil where they are made of floats.
func (f *quantizedGraph) quantizedProducer(v *ir.Value) *ir.Node {
	n := v.Producer()
	if n == nil {
		return nil
	}
	if f.integer[n] && !f.fusedInput(n, v) {
		return n
	}
	if len(n.Inputs()) == 0 || n.Input(0) == nil {
		return nil
	}
	if m := n.Input(0).Producer(); m != nil && f.integer[m] && f.fusedActivation(m) == n {
		return m
	}
	return nil
}

// takesFloats reports whether v is what n makes in front of an activation that it absorbs: nobody reads that.
func (f *quantizedGraph) fusedInput(n *ir.Node, v *ir.Value) bool {
	a := f.fusedActivation(n)
	return a != nil && a.Input(0) == v
}

// wanted reports whether some node reads v as codes.
func (f *quantizedGraph) readQuantized(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), f.readsQuantized)
}

// coded reports whether a use reads codes.
func (f *quantizedGraph) readsQuantized(u ir.Use) bool {
	if u.Node == nil || !f.integer[u.Node] {
		return false
	}
	return u.Index < len(f.reads(u.Node))
}

// values are those that have codes, in the order of the nodes.
func (f *quantizedGraph) quantizedValues() []*ir.Value {
	var vs []*ir.Value
	seen := map[*ir.Value]bool{}
	for n := range f.c.Model.Graph.Nodes() {
		if !f.integer[n] {
			continue
		}
		for _, v := range slices.Concat(f.reads(n), f.makes(n)) {
			if !seen[v] {
				seen[v] = true
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// root is the value whose scale v has: what only moves codes has the scale of what it reads.
func (f *quantizedGraph) scaleSource(v *ir.Value) *ir.Value {
	n := f.quantizedProducer(v)
	if n == nil || f.layers[n] != nil {
		return v
	}
	if rule, activations := activationRuleOf(n); rule.sameScale {
		return f.scaleSource(activations[0])
	}
	return v
}

// needed are the values that something is to be known of: ranges, of those too that may become roots when others
// stay float, and means of what layers with biases read.
func (f *quantizedGraph) observed() []*ir.Value {
	vs := f.quantizedValues()
	for n := range f.c.Model.Graph.Nodes() {
		if l := f.layers[n]; l != nil && l.bias != nil {
			vs = append(vs, n.Input(0))
		}
	}
	return vs
}

// exact reports whether readers of floats may read v itself: its codes are made of it, and not the other way round.
func (f *quantizedGraph) keepsFloat(v *ir.Value) bool {
	n := f.quantizedProducer(v)
	return n == nil || f.layers[n] != nil && f.layers[n].consumer != nil
}
