package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Kept are the results of the forward graph that the way back reads, in order, with those that only
// differ in shape once: what training keeps in memory beside parameters. Inputs are not among them.
func (t *Tape) Kept() []*ir.Value {
	inside := t.inForward()
	var kept []*ir.Value
	for _, n := range t.forward {
		for _, v := range n.Outputs {
			if v != nil && len(later(v, inside)) > 0 {
				kept = append(kept, v)
			}
		}
	}
	return kept
}

// Bytes is the size of a value of the forward graph.
func (t *Tape) Bytes(v *ir.Value) int64 { return t.types[v].Bytes() }

// inForward tells the nodes of the forward graph from others.
func (t *Tape) inForward() map[*ir.Node]bool {
	t.Close()
	inside := map[*ir.Node]bool{}
	for _, n := range t.forward {
		inside[n] = true
	}
	return inside
}

// later are the uses of v by nodes that are not inside.
func later(v *ir.Value, inside map[*ir.Node]bool) []ir.Use {
	return slices.DeleteFunc(slices.Clone(v.Uses()), func(u ir.Use) bool { return u.Node == nil || inside[u.Node] })
}

// order gives each node its place in the graph.
func (t *Tape) order() map[*ir.Node]int {
	at := map[*ir.Node]int{}
	for n := range t.Graph().Nodes() {
		at[n] = len(at)
	}
	return at
}

// Value is the forward graph's value of this name, nil if there is none.
func (t *Tape) Value(name string) *ir.Value {
	for v := range t.Model.Values() {
		if v.Name == name {
			return v
		}
	}
	return nil
}
