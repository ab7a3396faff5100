package opset

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A scan is a Scan node of opset 9 or later. Its inputs are states and then sequences; its body has a state, or an
// element of a sequence, for each of them, and states and then elements as outputs.
type scan struct {
	node   *ir.Node
	states int
}

// scanOf is n as a Scan node, false if it is another operator or malformed.
func scanOf(n *ir.Node) (scan, bool) {
	if n == nil || !n.Op.Is("Scan") || n.Graph().Opset("") < 9 {
		return scan{}, false
	}
	s := scan{n, len(n.Inputs()) - int(n.Int("num_scan_inputs", 0))}
	return s, s.states >= 0 && s.states < len(n.Inputs()) && s.body() != nil
}

func (s scan) body() *ir.Graph {
	for g := range s.node.Subgraphs() {
		return g
	}
	return nil
}

// axis is the axis of sequence k, of the attribute of that name, among rank axes.
func (s scan) axis(name string, k, rank int) (int, bool) {
	axes, ok := attrInts(s.node, name)
	if !ok || k >= len(axes) {
		return 0, ok && rank > 0
	}
	return axis(axes[k], rank)
}

// sequence is the shape of sequence k of the inputs, and its axis.
func (s scan) sequence(f *inference, k int) (shape []ir.Dim, at int, ok bool) {
	if shape, ok = f.shape(s.node.Input(s.states + k)); !ok {
		return nil, 0, false
	}
	at, ok = s.axis("scan_input_axes", k, len(shape))
	return shape, at, ok
}

// input is the shape of input i of the body.
func (s scan) input(f *inference, i int) ([]ir.Dim, bool) {
	switch {
	case i < 0 || i >= len(s.node.Inputs()):
		return nil, false
	case i < s.states:
		return f.shape(s.node.Input(i))
	}
	shape, at, ok := s.sequence(f, i-s.states)
	if !ok {
		return nil, false
	}
	return slices.Delete(slices.Clone(shape), at, at+1), true
}

// scanShape is the shape of an output of Scan: of a state, or of the elements of the body's output along an axis.
func scanShape(f *inference, n *ir.Node, i int) ([]ir.Dim, bool) {
	s, ok := scanOf(n)
	if !ok || i >= len(s.body().Outputs) {
		return nil, false
	}
	// A state has one shape in all iterations.
	if i < s.states {
		return f.shape(n.Input(i))
	}
	element, ok := f.shape(s.body().Outputs[i])
	sequence, along, ok2 := s.sequence(f, 0)
	at, ok3 := s.axis("scan_output_axes", i-s.states, len(element)+1)
	if !ok || !ok2 || !ok3 {
		return nil, false
	}
	return slices.Insert(slices.Clone(element), at, sequence[along]), true
}

// scanRequirements requires sequences of one length, and of one element at least: without any, outputs have no
// elements.
func scanRequirements(f *inference, n *ir.Node) []requirement {
	s, ok := scanOf(n)
	if !ok {
		return nil
	}
	var list []requirement
	var length ir.Dim
	for k := range len(n.Inputs()) - s.states {
		shape, at, ok := s.sequence(f, k)
		if !ok {
			return list
		}
		if k == 0 {
			length = shape[at]
			list = append(list, requirement{length, ir.Dim{N: 1}, isAtLeast})
		} else {
			list = append(list, requirement{size: shape[at], want: length})
		}
	}
	return list
}
