package grad

import "github.com/mcompress/mcompress/ir"

// seededDropout recomputes the mask from the seed: nothing is stored.
var seededDropout = []rule{
	{Domain: own, Type: "SeededDropout", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return t.Own("SeededDropout", 1, []*ir.Value{dy[0], n.Input(1)}, n.Attrs...), nil
	}},
}
