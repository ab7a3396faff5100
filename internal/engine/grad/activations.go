package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Activations changes how the results of the forward pass are stored until the backward pass: recomputed, in float16,
// or in another form. It is used after Backward.
type Activations struct {
	*Tape
	copies map[*ir.Node]*ir.Node // nodes that recompute results, with the nodes of the forward graph that they repeat
	forms  map[*ir.Node]bool     // nodes that Replace added
	at     map[*ir.Node]int      // positions of the nodes that Replace did not add; nil before they are needed

	recomputed float64 // multiply-adds of copies
}

// Activations returns the storage plan of t.
func (t *Tape) Activations() *Activations {
	return &Activations{Tape: t, copies: map[*ir.Node]*ir.Node{}, forms: map[*ir.Node]bool{}}
}

// Stored returns the results of the forward graph that the backward pass consumes, in order: the memory of training
// besides parameters and inputs.
func (a *Activations) Stored() []*ir.Value {
	forward := a.forwardSet()
	var stored []*ir.Value
	for _, n := range a.forward {
		for _, v := range n.Outputs {
			if v != nil && len(usesOutside(v, forward)) > 0 {
				stored = append(stored, v)
			}
		}
	}
	return stored
}

// Replace stores another form of a result: store computes it from the value, and load restores the value once, before
// its first consumer in the backward pass. It returns both nodes; results that the backward pass does not consume are
// unchanged.
func (a *Activations) Replace(v *ir.Value, store, load func(*ir.Value) *ir.Node) (stored, loaded *ir.Node) {
	uses := usesOutside(v, a.forwardSet())
	if len(uses) == 0 {
		return nil, nil
	}
	if a.at == nil {
		a.at = a.positions()
	}
	// Once, before the first consumer: restoring for each of them would repeat the work.
	first := earliest(uses, a.at)
	stored = store(v)
	// Right after the producer: v is then live only until its last consumer in the forward pass.
	a.Graph().InsertBefore(v.Producer().Next(), stored)
	loaded = load(stored.Outputs[0])
	a.Graph().InsertBefore(first, loaded)
	stored.Name, loaded.Name = "storage of "+v.Producer().Label(), "restoration of "+v.Producer().Label()
	a.forms[stored], a.forms[loaded] = true, true
	for _, u := range uses {
		u.Node.SetInput(u.Index, loaded.Outputs[0])
	}
	return stored, loaded
}

// forwardSet returns the nodes of the forward graph. Only storeMask changes it.
func (t *Tape) forwardSet() map[*ir.Node]bool {
	t.Close()
	if t.inside == nil {
		t.inside = make(map[*ir.Node]bool, len(t.forward))
		for _, n := range t.forward {
			t.inside[n] = true
		}
	}
	return t.inside
}

// usesOutside returns the uses of v by nodes that are not in the set.
func usesOutside(v *ir.Value, set map[*ir.Node]bool) []ir.Use {
	return slices.DeleteFunc(slices.Clone(v.Uses()), func(u ir.Use) bool { return u.Node == nil || set[u.Node] })
}

// positions returns the index of each node in the graph.
func (t *Tape) positions() map[*ir.Node]int {
	at := map[*ir.Node]int{}
	for n := range t.Graph().Nodes() {
		at[n] = len(at)
	}
	return at
}

// earliest returns the first node of uses.
func earliest(uses []ir.Use, at map[*ir.Node]int) *ir.Node {
	return slices.MinFunc(uses, func(a, b ir.Use) int { return at[a.Node] - at[b.Node] }).Node
}

// cloneNode inserts a copy of n with other inputs before a node.
func (a *Activations) cloneNode(n *ir.Node, in []*ir.Value, before *ir.Node) *ir.Node {
	g := a.Graph()
	made := g.NewNode(n.Op, in, n.Attrs...)
	made.Name = n.Label()
	outs := make([]*ir.Value, len(n.Outputs))
	for i, o := range n.Outputs {
		if o != nil {
			outs[i] = g.NewValue(o.Name)
			a.types[outs[i]] = a.types[o]
			if spec, ok := a.results[o]; ok {
				a.results[outs[i]] = spec
			}
		}
	}
	made.SetOutputs(outs...)
	g.InsertBefore(before, made)
	// Positions are of another graph now.
	a.at = nil
	a.copies[made] = n
	a.recomputed += nodeWork(a.Tape, n)
	// Of a copy of a copy, the node of the forward graph: work and layers are counted by it.
	if origin := a.copies[n]; origin != nil {
		a.copies[made] = origin
	}
	return made
}
