package grad

import "github.com/mcompress/mcompress/ir"

// straightThrough is the straight-through estimator: the gradient of quantization is that of the identity (Bengio et
// al. 2013, arXiv:1308.3432, section 4).
var straightThrough = []rule{
	{Domain: own, Type: "StraightThrough", Backward: func(_ *Tape, _ *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{nil, dy[0]}, nil
	}},
}
