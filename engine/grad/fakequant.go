package grad

import "github.com/mcompress/mcompress/ir"

// fakeQuant passes gradients straight through (Bengio et al. 2013, section 4; Jacob et al. 2018, section 3): rounding has none of its own.
// Scales follow from the range of what is quantized, so that no value lies outside of it.
var fakeQuant = []Rule{
	{Domain: own, Type: "FakeQuantWeight", Backward: straight},
	{Domain: own, Type: "FakeQuantDynamic", Backward: straight},
}

func straight(_ *Tape, _ *ir.Node, dy []*ir.Value) ([]*ir.Value, error) { return dy[:1], nil }
