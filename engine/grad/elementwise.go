package grad

import "github.com/mcompress/mcompress/ir"

var elementwise = []Rule{
	{Type: "Add", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return []*ir.Value{t.broadcast(n, 0, dy[0]), t.broadcast(n, 1, dy[0])}, nil
	}},
	{Type: "Relu", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		return t.Own("ReluGrad", 1, []*ir.Value{n.Outputs[0], dy[0]}), nil
	}},
}

// broadcast is the gradient of operand i of n from dv, which has the shape of n's output.
func (t *Tape) broadcast(n *ir.Node, i int, dv *ir.Value) *ir.Value {
	if !t.Needs(n.Input(i)) {
		return nil
	}
	return t.SumTo(dv, t.Shape(n.Outputs[0]), t.Shape(n.Input(i)))
}
