package qdq

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A quantizedGraph is the nodes of a main graph that compute with quantized activations: layers, and the operators
// between them.
type quantizedGraph struct {
	step             *pass.Step
	layers           map[*ir.Node]*quantizedLayer
	integer          map[*ir.Node]bool
	fusesActivations bool // the quantized range replaces Relu and Clip
}

// newQuantizedGraph finds the largest set of nodes such that operators between layers read only quantized values, and
// have a consumer of their quantized outputs: anything else would lose precision without need.
func newQuantizedGraph(s *pass.Step, layers map[*ir.Node]*quantizedLayer, left map[*ir.Node]bool,
	absorbs bool) *quantizedGraph {
	f := &quantizedGraph{step: s, layers: layers, integer: map[*ir.Node]bool{}, fusesActivations: absorbs}
	var glue []*ir.Node
	for n := range s.Model.Graph.Nodes() {
		if left[n] || layers[n] == nil && activationsOf(n) == nil {
			continue
		}
		f.integer[n] = true
		if layers[n] == nil {
			glue = append(glue, n)
		}
	}
	// Removing a node may disconnect its neighbours. As nodes are only removed, what remains is the largest set, in
	// whatever order.
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

// isConnected reports whether n reads quantized values, and its outputs are read quantized.
func (f *quantizedGraph) isConnected(n *ir.Node) bool {
	return !slices.ContainsFunc(f.quantizedInputs(n), func(v *ir.Value) bool {
		return f.quantizedProducer(v) == nil
	}) && slices.ContainsFunc(f.outputs(n), f.readQuantized)
}

// quantizedInputs are the activations that n reads quantized.
func (f *quantizedGraph) quantizedInputs(n *ir.Node) []*ir.Value {
	if f.layers[n] != nil {
		return n.Inputs()[:1]
	}
	return activationsOf(n)
}

// quantizedOutputs are the quantized outputs of n. MatMul and Gemm return floats without a quantized consumer.
func (f *quantizedGraph) quantizedOutputs(n *ir.Node) []*ir.Value {
	ends := f.outputs(n)
	// Conv has integer outputs in any case, as QLinearConv has no float ones.
	if l := f.layers[n]; l != nil && l.consumer != nil && !f.readQuantized(ends[0]) {
		return nil
	}
	return ends
}

// outputs are those of n, or of the activation that its quantized range replaces.
func (f *quantizedGraph) outputs(n *ir.Node) []*ir.Value {
	if a := f.fusedActivation(n); a != nil {
		return a.Outputs
	}
	return slices.DeleteFunc(slices.Clone(n.Outputs), func(v *ir.Value) bool { return v == nil })
}

// fusedActivation is the Relu or Clip after n that the quantized range replaces, nil if there is none.
func (f *quantizedGraph) fusedActivation(n *ir.Node) *ir.Node {
	if !f.fusesActivations || len(n.Outputs) != 1 || len(n.Outputs[0].Uses()) != 1 {
		return nil
	}
	// Its output has the scale of its input, whose range reaches below 0.
	if f.layers[n] == nil && keepsScale(n) {
		return nil
	}
	a := n.Outputs[0].Uses()[0].Node
	if a == nil || a.Graph() != n.Graph() || !a.Op.Is("Relu") && !f.isFusibleClip(a, n.Outputs[0]) {
		return nil
	}
	if l := f.layers[n]; l != nil && l.consumer != nil &&
		slices.ContainsFunc(a.Outputs[0].Uses(), func(u ir.Use) bool { return !f.readsQuantized(u) }) {
		return nil // float outputs are more precise
	}
	return a
}

// isFusibleClip reports whether n is a Clip of v by constants with zero between them.
func (f *quantizedGraph) isFusibleClip(n *ir.Node, v *ir.Value) bool {
	if !n.Op.Is("Clip") || n.Input(0) != v {
		return false
	}
	lo, okLo := bound(n.Input(1))
	hi, okHi := bound(n.Input(2))
	return okLo && okHi && lo <= 0 && hi >= 0
}

// bound is an input of a Clip; an absent one is returned as 0.
func bound(v *ir.Value) (float32, bool) {
	if v == nil {
		return 0, true
	}
	o := pass.Trace(v)
	if o == nil || !o.Trouble.None() || o.Elem != ir.Float || o.Base.Const.DType != ir.Float || o.Base.Const.Elems() != 1 {
		return 0, false
	}
	b, ok := o.Base.Const.Stored()
	if !ok {
		return 0, false
	}
	return ir.View[float32](&ir.Array{DType: ir.Float, Data: b})[0], true
}

// quantizedProducer is the node that computes v quantized, nil if v is quantized from floats.
func (f *quantizedGraph) quantizedProducer(v *ir.Value) *ir.Node {
	n := v.Producer()
	if n == nil {
		return nil
	}
	if f.integer[n] {
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

// readQuantized reports whether some node reads v quantized.
func (f *quantizedGraph) readQuantized(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), f.readsQuantized)
}

// readsQuantized reports whether a use reads quantized values.
func (f *quantizedGraph) readsQuantized(u ir.Use) bool {
	if u.Node == nil || !f.integer[u.Node] {
		return false
	}
	return u.Index < len(f.quantizedInputs(u.Node))
}

// quantizedValues are those that are quantized, in the order of the nodes.
func (f *quantizedGraph) quantizedValues() []*ir.Value {
	var vs []*ir.Value
	seen := map[*ir.Value]bool{}
	for n := range f.step.Model.Graph.Nodes() {
		if !f.integer[n] {
			continue
		}
		for _, v := range slices.Concat(f.quantizedInputs(n), f.quantizedOutputs(n)) {
			if !seen[v] {
				seen[v] = true
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// scaleSource is the value whose scale v has: moved elements have the scale of their input.
func (f *quantizedGraph) scaleSource(v *ir.Value) *ir.Value {
	for {
		n := f.quantizedProducer(v)
		if n == nil || f.layers[n] != nil || !keepsScale(n) {
			return v
		}
		// Of several inputs with one scale the first one's.
		v = activationsOf(n)[0]
	}
}

// observedValues are the values to observe: ranges, also of possible scale sources if other nodes are kept in float,
// and means of inputs of layers with biases.
func (f *quantizedGraph) observedValues() []*ir.Value {
	vs := f.quantizedValues()
	for n := range f.step.Model.Graph.Nodes() {
		if l := f.layers[n]; l != nil && l.bias != nil {
			vs = append(vs, n.Input(0))
		}
	}
	return vs
}

// keepsFloat reports whether float consumers may read v itself: v is quantized from it, and not the other way round.
func (f *quantizedGraph) keepsFloat(v *ir.Value) bool {
	n := f.quantizedProducer(v)
	return n == nil || f.layers[n] != nil && f.layers[n].consumer != nil
}
