package grad

import "github.com/mcompress/mcompress/ir"

// Stash puts another form of a result in its place until the way back reads it: store makes it of the
// value, and load makes the value again, once, before its first reader. Results that the way
// back does not read are left alone. It is called behind Backward and Recompute.
func (t *Tape) Stash(v *ir.Value, store, load func(*ir.Value) *ir.Node) {
	inside, at := t.inForward(), t.order()
	readers := later(v, inside)
	if len(readers) == 0 {
		return
	}
	first := readers[0].Node
	for _, u := range readers {
		if at[u.Node] < at[first] {
			first = u.Node
		}
	}
	kept := store(v)
	t.Graph().InsertBefore(v.Producer().Next(), kept)
	back := load(kept.Outputs[0])
	t.Graph().InsertBefore(first, back)
	for _, u := range readers {
		u.Node.SetInput(u.Index, back.Outputs[0])
	}
}

// New makes a node with one output that is not in the graph yet.
func (t *Tape) New(id ir.OpID, in []*ir.Value, attrs ...*ir.Attr) *ir.Node {
	n := t.Graph().NewNode(id, in, attrs...)
	n.SetOutputs(t.Graph().NewValue("k"))
	return n
}
