package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// recurrents are layers that process sequences step by step. Only their inputs and Y are stored: gates are recomputed.
var recurrents = []rule{
	{Type: "RNN", Forward: keepStates, Backward: recurrent},
	{Type: "GRU", Forward: keepStates, Backward: recurrent},
	{Type: "LSTM", Forward: keepStates, Backward: recurrent},
}

// keepStates adds the output Y, the states of all steps.
func keepStates(t *Tape, n *ir.Node) error {
	if len(n.Outputs) > 0 && n.Outputs[0] != nil {
		return nil
	}
	x, r := t.Shape(n.Input(0)), t.Shape(n.Input(2))
	shape := []int64{x[0], r[0], x[1], r[2]}
	if n.Int("layout", 0) == 1 {
		shape = []int64{x[0], x[1], r[0], r[2]}
	}
	y := t.Graph().NewValue("states")
	t.SetType(y, t.DType(n.Input(0)), shape...)
	outs := slices.Clone(n.Outputs)
	outs[0] = y
	n.SetOutputs(outs...)
	return nil
}

// recurrentInputs are the inputs of LSTM, the operator with the most, and those of them that have gradients.
const recurrentInputs = 8

var recurrentGradients = []int{0, 1, 2, 3, 5, 6, 7}

func recurrent(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	in := make([]*ir.Value, recurrentInputs)
	copy(in, n.Inputs())
	in = append(append(in, n.Outputs[0]), dy...)
	dx := make([]*ir.Value, recurrentInputs)
	for i, v := range t.Own(n.Op.Type+"Grad", len(recurrentGradients), in, n.Attrs...) {
		dx[recurrentGradients[i]] = v
	}
	return dx, nil
}
