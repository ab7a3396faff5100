package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Segment is a part of the forward graph, from the node of number From to the one before To.
type Segment struct{ From, To int }

// Recompute makes the way back compute again what it reads of these segments (Chen et al., Training Deep Nets with
// Sublinear Memory Cost, 2016, arXiv:1604.06174). Segments come in order and do not overlap; results that others read,
// and those of nodes outside all segments, are kept. It is called once, behind Backward. The same
// numbers come out, bit for bit.
func (t *Tape) Recompute(segments []Segment) {
	r := &recomputation{Tape: t, segment: map[*ir.Node]int{}, inside: t.inForward(), at: t.order(), twins: map[*ir.Value]*ir.Value{}}
	for _, n := range t.forward {
		r.segment[n] = kept
	}
	for i, s := range segments {
		for _, n := range t.forward[s.From:s.To] {
			r.segment[n] = i
		}
	}
	for i, s := range slices.Backward(segments) {
		r.compute(i, t.forward[s.From:s.To])
	}
}

// kept is the segment of nodes whose results are kept.
const kept = -1

type recomputation struct {
	*Tape
	segment map[*ir.Node]int
	inside  map[*ir.Node]bool
	at      map[*ir.Node]int // the places of nodes before any were added
	twins   map[*ir.Value]*ir.Value
}

// compute computes the results of a segment that the way back reads a second time, right before the first
// node that reads one.
func (r *recomputation) compute(s int, nodes []*ir.Node) {
	var wanted []*ir.Value
	var first *ir.Node
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v == nil || r.stays(v) {
				continue
			}
			uses := later(v, r.inside)
			for _, u := range uses {
				if first == nil || r.at[u.Node] < r.at[first] {
					first = u.Node
				}
			}
			if len(uses) > 0 {
				wanted = append(wanted, v)
			}
		}
	}
	for _, v := range wanted {
		r.replace(v, first)
	}
}

// stays reports whether v is kept: it is read outside of its segment.
func (r *recomputation) stays(v *ir.Value) bool {
	p := v.Producer()
	if p == nil || !r.inside[p] || r.segment[p] == kept {
		return true
	}
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool {
		return u.Node == nil || r.inside[u.Node] && r.segment[u.Node] != r.segment[p]
	})
}

// replace lets the readers of v on the way back read its twin.
func (r *recomputation) replace(v *ir.Value, before *ir.Node) {
	twin := r.twin(v, before)
	for _, u := range later(v, r.inside) {
		if _, old := r.at[u.Node]; old {
			u.Node.SetInput(u.Index, twin)
		}
	}
}

// twin computes v again, and what it needs of its segment.
func (r *recomputation) twin(v *ir.Value, before *ir.Node) *ir.Value {
	if r.stays(v) {
		return v
	}
	if made := r.twins[v]; made != nil {
		return made
	}
	n := v.Producer()
	in := make([]*ir.Value, len(n.Inputs()))
	for i, x := range n.Inputs() {
		if x != nil {
			in[i] = r.twin(x, before)
		}
	}
	made := r.again(n, in, before)
	for i, o := range n.Outputs {
		if o != nil {
			r.twins[o] = made.Outputs[i]
		}
	}
	r.copies = append(r.copies, made)
	return r.twins[v]
}

// again adds a copy of n that reads in before a node.
func (t *Tape) again(n *ir.Node, in []*ir.Value, before *ir.Node) *ir.Node {
	g := t.Graph()
	made := g.NewNode(n.Op, in, n.Attrs...)
	made.Name = n.Name
	outs := make([]*ir.Value, len(n.Outputs))
	for i, o := range n.Outputs {
		if o != nil {
			outs[i] = g.NewValue(o.Name)
			t.types[outs[i]] = t.types[o]
		}
	}
	made.SetOutputs(outs...)
	g.InsertBefore(before, made)
	return made
}
