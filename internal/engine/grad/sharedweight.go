package grad

import "github.com/mcompress/mcompress/ir"

// sharedWeight sums the gradients of the elements of each entry of a codebook.
var sharedWeight = []rule{
	{Domain: own, Type: "SharedWeight", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		in := []*ir.Value{n.Input(1), dy[0]}
		if scales := n.Input(2); scales != nil {
			in = append(in, scales)
		}
		attrs := []*ir.Attr{ir.IntAttr("entries", t.Shape(n.Input(0))[0]), ir.IntAttr("block", n.Int("block", 0))}
		return []*ir.Value{t.Own("SharedWeightGrad", 1, in, attrs...)[0]}, nil
	}},
}
