package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

var convolutions = []rule{
	{Type: "Conv", Backward: convolution("ConvGrad")},
	{Type: "ConvTranspose", Backward: convolution("ConvTransposeGrad")},
}

// convolution is the gradient by an operator of package backward with the node's own attributes.
func convolution(typ string) gradient {
	return func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return t.Own(typ, 3, []*ir.Value{n.Input(0), n.Input(1), dy[0]}, slices.Clone(n.Attrs)...), nil
	}
}
