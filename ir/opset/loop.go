package opset

import "github.com/mcompress/mcompress/ir"

// A loop is a Loop node. Its inputs are a trip count, a condition and loop-carried values; its body has the number of
// the iteration, the condition and the carried values as inputs, and the condition, the carried values and scan outputs
// as outputs.
type loop struct {
	node *ir.Node
	body *ir.Graph
}

// Inputs of Loop and of its body before the carried values, and outputs of the body before those.
const (
	loopInputs  = 2
	loopOutputs = 1
)

// loopOf is n as a Loop node, false if it is another operator or malformed.
func loopOf(n *ir.Node) (loop, bool) {
	if n == nil || !n.Op.Is("Loop") {
		return loop{}, false
	}
	for body := range n.Subgraphs() {
		l := loop{n, body}
		return l, l.carried() >= 0 && len(body.Inputs) == len(n.Inputs()) && len(body.Outputs) >= loopOutputs+l.carried()
	}
	return loop{}, false
}

func (l loop) carried() int { return len(l.node.Inputs()) - loopInputs }

// input is the shape that input i of the body has in the first iteration. It is the answer only where sizes are solved,
// which have to suit this iteration too: others may have other shapes.
func (l loop) input(f *inference, i int) ([]ir.Dim, bool) {
	switch {
	case i < 0 || f.sizes == nil:
		return nil, false
	case i < loopInputs:
		return dims(nil), true
	}
	return f.shape(l.node.Input(i))
}

// common is a shape with the sizes that are the same in a and b, nil if these have different ranks.
func common(a, b []ir.Dim) []ir.Dim {
	if len(a) != len(b) {
		return nil
	}
	out := unknown(len(a))
	for i := range out {
		if a[i] == b[i] {
			out[i] = a[i]
		}
	}
	return out
}

// iterations is the trip count, where no condition ends the loop before.
func (l loop) iterations(f *inference) ir.Dim {
	count, ok := f.ints(l.node.Input(0))
	if !ok || len(count) != 1 || count[0] > largestCount || !f.holds(l.node.Input(1)) || !f.holds(l.body.Outputs[0]) {
		return ir.Dim{N: -1}
	}
	return ir.Dim{N: max(0, count[0])}
}

// largestCount bounds sizes that are computed; exporters write the largest integer for a loop that only its condition
// ends.
const largestCount = 1 << 40

// holds reports whether a condition is true in each iteration.
func (f *inference) holds(condition *ir.Value) bool {
	x, ok := f.floats(condition)
	return condition == nil || ok && len(x) == 1 && x[0] == 1
}

// isCondition reports whether v is the condition within the body of a Loop, which runs only while that is true.
func isCondition(v *ir.Value) bool {
	if !v.IsInput() {
		return false
	}
	l, ok := loopOf(v.Graph().Owner)
	return ok && v == l.body.Inputs[1]
}

// loopShape is the shape of an output of Loop: of a carried value, with the sizes that the first iteration does not
// change, or of the elements of a scan output, along a new first axis. It is known only where sizes are solved: a name
// of a size in a body may be another size in each iteration.
func loopShape(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	l, ok := loopOf(n)
	if !ok || loopOutputs+i >= len(l.body.Outputs) || f.sizes == nil {
		return nil, false
	}
	after, ok := f.shape(l.body.Outputs[loopOutputs+i])
	if !ok {
		return nil, false
	}
	if i >= l.carried() {
		return append([]ir.Dim{l.iterations(f)}, after...), true
	}
	before, ok := l.input(f, loopInputs+i)
	if !ok {
		return nil, false
	}
	same := common(before, after)
	return same, same != nil
}

// loopRequirements requires at least one iteration: without any, scan outputs have no elements.
func loopRequirements(f *inference, n *ir.Node) []requirement {
	l, ok := loopOf(n)
	if !ok {
		return nil
	}
	return []requirement{{l.iterations(f), ir.Dim{N: 1}, isAtLeast}}
}
