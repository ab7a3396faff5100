package grad

import "github.com/mcompress/mcompress/ir"

var movement = []Rule{
	{Type: "Reshape", Backward: reshaped},
}

// reshaped is the gradient of operators that only change the shape.
func reshaped(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	return []*ir.Value{t.Reshape(dy[0], t.Shape(n.Input(0)))}, nil
}
