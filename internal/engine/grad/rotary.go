package grad

import "github.com/mcompress/mcompress/ir"

// rotaries are rotations of pairs of elements by angles that depend on positions: the gradient is rotated back. Nothing
// is stored but positions.
var rotaries = []rule{
	{Type: "RotaryEmbedding", Backward: rotateBack(1, 2)},
	{Domain: microsoft, Type: "RotaryEmbedding", Backward: rotateBack(2, 3)},
}

// rotateBack is the rotation with sines, input sin, of the opposite sign.
func rotateBack(cos, sin int) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		if t.Needs(n.Input(cos)) || t.Needs(n.Input(sin)) {
			return nil, errUnknownForm
		}
		in := append([]*ir.Value{dy[0]}, n.Inputs()[1:]...)
		in[sin] = t.Op("Neg", []*ir.Value{n.Input(sin)})
		return []*ir.Value{t.add(n.Op, 1, in, n.Attrs)[0]}, nil
	}
}
