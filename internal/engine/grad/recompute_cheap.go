package grad

import (
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

const (
	maxChain = 4 // memory-bound operators that are recomputed one after another
	// nodes between the last consumer of a value in the forward pass and the first one in the backward pass
	minIdle = 6
)

// RecomputeCheap makes the backward pass recompute results of memory-bound operators from values that are stored
// anyway. Of a convolution followed by normalization and activation only the convolution's result is stored then. It is
// called at most once, after Recompute, whose copies are included. The results of the step are bit-identical.
func (a *Activations) RecomputeCheap() {
	r := &cheapRecomputation{a: a, forward: maps.Clone(a.forwardSet()), at: a.positions(),
		recomputed: map[*ir.Value]bool{}}
	for n := range a.copies {
		r.forward[n] = true
	}
	var chosen []*ir.Value
	for n := range a.Graph().Nodes() {
		if v := n.Outputs[0]; r.forward[n] && v != nil && r.isIdle(v) &&
			r.isRecomputable(v, r.at[r.firstConsumer(v)], maxChain) {
			r.recomputed[v] = true
			chosen = append(chosen, v)
		}
	}
	// After the choice, which depends on positions and consumers before any copy.
	for _, v := range chosen {
		r.replace(v)
	}
}

type cheapRecomputation struct {
	a          *Activations
	forward    map[*ir.Node]bool // nodes that compute results, with recomputing copies
	at         map[*ir.Node]int
	recomputed map[*ir.Value]bool
}

// firstConsumer returns the first node of the backward pass that consumes v, nil if there is none.
func (r *cheapRecomputation) firstConsumer(v *ir.Value) (first *ir.Node) {
	for _, u := range usesOutside(v, r.forward) {
		if first == nil || r.at[u.Node] < r.at[first] {
			first = u.Node
		}
	}
	return first
}

// isIdle reports whether v has no consumer for a while before the backward pass consumes it.
func (r *cheapRecomputation) isIdle(v *ir.Value) bool {
	first := r.firstConsumer(v)
	if first == nil || slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node == nil }) {
		return false
	}
	last := r.at[v.Producer()]
	for _, u := range v.Uses() {
		if r.forward[u.Node] {
			last = max(last, r.at[u.Node])
		}
	}
	return r.at[first]-last > minIdle
}

// isRecomputable reports whether a chain of memory-bound operators computes v from values that are live at a position.
func (r *cheapRecomputation) isRecomputable(v *ir.Value, at, chain int) bool {
	n := v.Producer()
	if chain == 0 || n == nil || !r.forward[n] || !operator.Of(n).MemoryBound() {
		return false
	}
	return !slices.ContainsFunc(n.Inputs(), func(x *ir.Value) bool {
		return x != nil && !r.isLive(x, at) && !r.isRecomputable(x, at, chain-1)
	})
}

// isLive reports whether x is stored until a position anyway.
func (r *cheapRecomputation) isLive(x *ir.Value, at int) bool {
	if x.Producer() == nil {
		return true
	}
	// A value that is recomputed itself is not stored: a copy that read it would store it again.
	return !r.recomputed[x] && slices.ContainsFunc(usesOutside(x, r.forward),
		func(u ir.Use) bool { return r.at[u.Node] >= at })
}

// replace replaces v by a recomputed copy in the backward pass.
func (r *cheapRecomputation) replace(v *ir.Value) {
	first := r.firstConsumer(v)
	uses := usesOutside(v, r.forward)
	made := r.addCopy(v, first, r.at[first])
	for _, u := range uses {
		u.Node.SetInput(u.Index, made)
	}
}

// addCopy adds a copy of v, and of the nodes that it depends on, before a node.
func (r *cheapRecomputation) addCopy(v *ir.Value, before *ir.Node, at int) *ir.Value {
	n := v.Producer()
	in := slices.Clone(n.Inputs())
	for i, x := range in {
		if x != nil && !r.isLive(x, at) {
			in[i] = r.addCopy(x, before, at)
		}
	}
	return r.a.cloneNode(n, in, before).Outputs[0]
}
