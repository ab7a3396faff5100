package precision

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// Inputs and outputs of the subgraphs of If, Loop and Scan: Loop's body has the
// iteration number and the condition as first inputs, and the condition as first output.

// firstScan is the first opset in which Scan has no sequence_lens.
const firstScan = 9

// controls reports whether n is an If, Loop or Scan of a supported version.
func controls(n *ir.Node) bool {
	return operator.Of(n).ControlFlow && (!n.Op.Is("Scan") || n.Graph().Opset("") >= firstScan)
}

// bodyOutput is a subgraph of n, and the index of its output that is n's output i.
func bodyOutput(n *ir.Node, i int) (*ir.Graph, int) {
	if !controls(n) {
		return nil, 0
	}
	for g := range n.Subgraphs() {
		if n.Op.Is("Loop") {
			return g, i + 1
		}
		return g, i
	}
	return nil, 0
}

// ownerInput is the index of the input of n that is input i of its subgraph, or -1.
func ownerInput(n *ir.Node, i int) int {
	switch {
	case n.Op.Is("Loop") && i < 2, !controls(n):
		return -1
	}
	return i // Loop's own inputs are the number of iterations and the condition, two as well
}

// stateInput is the input of the body of n that holds the loop-carried value of n's output i, nil if that is no such
// value: states are the last inputs of a Loop's body, and the first ones of a Scan's.
func stateInput(n *ir.Node, body *ir.Graph, i int) *ir.Value {
	first, states := 0, 0
	switch {
	case n.Op.Is("Loop"):
		first, states = 2, len(body.Inputs)-2
	case n.Op.Is("Scan"):
		states = len(n.Inputs()) - int(n.Int("num_scan_inputs", 0))
	}
	if i < 0 || i >= states || first+i >= len(body.Inputs) {
		return nil
	}
	return body.Inputs[first+i]
}
