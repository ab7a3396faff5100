package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Segment is a part of the forward graph, the nodes From to To-1.
type Segment struct{ From, To int }

// Recompute makes the backward pass recompute the results of these segments (Chen et al., Training Deep Nets with
// Sublinear Memory Cost, 2016, arXiv:1604.06174). Segments are in order and do not overlap. Results that nodes outside
// their segment consume, and those of nodes outside all segments, are stored. It is called at most once. The results of
// the step are bit-identical.
func (a *Activations) Recompute(segments []Segment) {
	r := &recomputation{a: a, segment: map[*ir.Node]int{}, forward: a.forwardSet(), at: a.positions(),
		copyOf: map[*ir.Value]*ir.Value{}}
	for _, n := range a.Tape.forward {
		r.segment[n] = storedNode
	}
	for i, s := range segments {
		for _, n := range a.Tape.forward[s.From:s.To] {
			r.segment[n] = i
		}
	}
	// From the last: its results are needed first in the backward pass.
	for _, s := range slices.Backward(segments) {
		r.recompute(a.Tape.forward[s.From:s.To])
	}
}

// storedNode is the segment of nodes outside all segments.
const storedNode = -1

type recomputation struct {
	a       *Activations
	segment map[*ir.Node]int
	forward map[*ir.Node]bool
	at      map[*ir.Node]int // positions of nodes before any were added
	copyOf  map[*ir.Value]*ir.Value
}

// recompute adds copies of the nodes of a segment before the first node of the backward pass that consumes one of their
// results.
func (r *recomputation) recompute(nodes []*ir.Node) {
	var needed []*ir.Value
	var first *ir.Node
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v == nil || r.isStored(v) {
				continue
			}
			uses := usesOutside(v, r.forward)
			for _, u := range uses {
				if first == nil || r.at[u.Node] < r.at[first] {
					first = u.Node
				}
			}
			if len(uses) > 0 {
				needed = append(needed, v)
			}
		}
	}
	for _, v := range needed {
		r.replace(v, first)
	}
}

// isStored reports whether v is consumed outside its segment, and stored therefore.
func (r *recomputation) isStored(v *ir.Value) bool {
	p := v.Producer()
	if p == nil || !r.forward[p] || r.segment[p] == storedNode {
		return true
	}
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool {
		return u.Node == nil || r.forward[u.Node] && r.segment[u.Node] != r.segment[p]
	})
}

// replace replaces v by its copy in the backward pass.
func (r *recomputation) replace(v *ir.Value, before *ir.Node) {
	made := r.addCopy(v, before)
	for _, u := range usesOutside(v, r.forward) {
		// Copies that were added meanwhile read the stored value.
		if _, old := r.at[u.Node]; old {
			u.Node.SetInput(u.Index, made)
		}
	}
}

// addCopy returns the copy of v, and adds it with the nodes of its segment that it depends on.
func (r *recomputation) addCopy(v *ir.Value, before *ir.Node) *ir.Value {
	if r.isStored(v) {
		return v
	}
	if made := r.copyOf[v]; made != nil {
		return made
	}
	n := v.Producer()
	in := make([]*ir.Value, len(n.Inputs()))
	for i, x := range n.Inputs() {
		if x != nil {
			in[i] = r.addCopy(x, before)
		}
	}
	made := r.a.cloneNode(n, in, before)
	for i, o := range n.Outputs {
		if o != nil {
			r.copyOf[o] = made.Outputs[i]
		}
	}
	return r.copyOf[v]
}
