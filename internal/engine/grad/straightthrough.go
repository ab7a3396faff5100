package grad

import "github.com/mcompress/mcompress/ir"

// straightThrough takes rounding, which has no gradient of its own, for the identity (Bengio et al. 2013, arXiv:1308.3432, section 4).
var straightThrough = []Rule{
	{Domain: own, Type: "StraightThrough", Backward: func(_ *Tape, _ *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{nil, dy[0]}, nil
	}},
}
