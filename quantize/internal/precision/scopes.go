package precision

import "github.com/mcompress/mcompress/ir"

// What If, Loop and Scan hand to their subgraphs and take from them: Loop's body has the
// iteration's number and the condition in front, and gives a condition first.

// firstScan is the first opset whose Scan has no sequence_lens.
const firstScan = 9

// controls reports whether n is an If, Loop or Scan whose rules are known.
func controls(n *ir.Node) bool {
	return n.Op.Is("If") || n.Op.Is("Loop") || n.Op.Is("Scan") && n.Graph().Opset("") >= firstScan
}

// bodyOutput is a subgraph of n, and which of its outputs is n's output i.
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

// ownerInput is which input of n its subgraph sees as input i, or -1.
func ownerInput(n *ir.Node, i int) int {
	switch {
	case n.Op.Is("Loop") && i < 2, !controls(n):
		return -1
	}
	return i // Loop's own inputs are the number of iterations and the condition, two as well
}

// carried is how many of n's values go around: Loop's and Scan's state.
func carried(n *ir.Node, body *ir.Graph) int {
	if n.Op.Is("Loop") {
		return len(body.Inputs) - 2
	}
	return len(n.Inputs()) - int(n.Int("num_scan_inputs", 0))
}

// called is the model's own function that n calls, or nil.
func called(n *ir.Node) *ir.Function {
	for _, f := range n.Graph().Model().Functions {
		if f.ID == n.Op || ir.DefaultDomain(f.ID.Domain) && f.ID.Overload == n.Op.Overload && n.Op.Is(f.ID.Type) {
			return f
		}
	}
	return nil
}
