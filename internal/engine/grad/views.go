package grad

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// storeBases makes the backward pass consume views of results as views of its own: a result and its views share their
// memory, and are one stored activation.
func (t *Tape) storeBases() {
	forward, at := t.forwardSet(), t.positions()
	for _, n := range t.forward {
		v := n.Outputs[0]
		uses := usesOutside(v, forward)
		if !isView(n) || len(uses) == 0 {
			continue
		}
		base := n.Input(0)
		// Views of views: only the first one in the chain owns memory.
		for isView(base.Producer()) {
			base = base.Producer().Input(0)
		}
		view := t.New(ir.OpID{Domain: newest, Type: "Reshape"}, []*ir.Value{base, t.Ints(t.Shape(v)...)},
			ir.IntAttr("allowzero", 1))
		view.Name = "backward of " + n.Label()
		t.Graph().InsertBefore(earliest(uses, at), view)
		for _, u := range uses {
			u.Node.SetInput(u.Index, view.Outputs[0])
		}
	}
}

func isView(n *ir.Node) bool { return n != nil && operator.Of(n).Move == operator.View }
