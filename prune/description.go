package prune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A description is the text of the kind of a segment. Nodes are visited from the last one backwards in the order of
// their inputs, so that the order of nodes in the file does not matter.
//
// Where an operator adds the residual and normalizes the sum, a segment ends with the sum. The normalization is the
// first part of the next segment, to which its scale belongs.
type description struct {
	*segment
	flow    *flow
	inside  func(*ir.Node) bool  // reports whether a node is part of the segment
	isOwn   func(*ir.Value) bool // reports whether a graph input is
	text    strings.Builder
	numbers map[*ir.Node]int // of visited nodes
}

// normalization is the type of the operator that normalizes like those of t that add the residual, whose sum is used,
// too; empty if there are none.
func (t trunk) normalization() string {
	for _, n := range t {
		if sumOf(n) != nil {
			return operator.Of(n).Sum.Normalization
		}
	}
	return ""
}

// sumOf is the output of n with the sum that n also normalizes, nil if there is none, or nothing reads it.
func sumOf(n *ir.Node) *ir.Value {
	s := operator.Of(n).Sum
	if s == nil || s.Output >= len(n.Outputs) || n.Outputs[s.Output] == nil || len(n.Outputs[s.Output].Uses()) == 0 {
		return nil
	}
	return n.Outputs[s.Output]
}

// write describes the segment, whose nodes are given in topological order.
func (d *description) write(nodes []*ir.Node) {
	d.visit(d.last)
	for _, n := range nodes {
		d.visit(n) // those that lead to graph outputs alone
	}
	d.kind = d.text.String()
}

// visit describes n after the nodes that it reads, and returns its number.
func (d *description) visit(n *ir.Node) int {
	if i, ok := d.numbers[n]; ok {
		return i
	}
	text := d.node(n)
	d.numbers[n] = len(d.numbers)
	if n != d.before {
		d.nodes = append(d.nodes, n)
	}
	d.text.WriteString(text + ";")
	return d.numbers[n]
}

func (d *description) node(n *ir.Node) string {
	scale := operator.Of(n).With(operator.Gain, operator.Shift)
	switch {
	case n == d.before || normalizes(n, d.normalization, stream(d.before)):
		text := d.normalization
		if a := n.Attr("epsilon"); a != nil {
			text += fmt.Sprintf(" %g", a.F)
		}
		return text + d.operands(n, func(i int) bool { return slices.Contains(scale, i) })
	case n == d.last && d.normalization != "" && operator.Of(n).Sum != nil:
		return n.Op.String() + d.operands(n, func(i int) bool { return !slices.Contains(scale, i) })
	}
	text := n.Op.String() + attributes(n) + d.operands(n, func(int) bool { return true })
	for i, v := range n.Outputs {
		if n != d.last && isGraphOutput(v) {
			text += fmt.Sprintf(" output %d", i)
		}
	}
	return text
}

// stream is the result of n that the residual stream continues with.
func stream(n *ir.Node) *ir.Value {
	if sum := sumOf(n); sum != nil {
		return sum
	}
	return n.Outputs[0]
}

// normalizes reports whether n is an operator of type typ that normalizes the last axis of v.
func normalizes(n *ir.Node, typ string, v *ir.Value) bool {
	return typ != "" && n.Op.Type == typ && n.Input(0) == v && n.Int("axis", -1) == -1
}

// operands describes the selected inputs of n.
func (d *description) operands(n *ir.Node, selected func(i int) bool) string {
	var b strings.Builder
	for i, v := range n.Inputs() {
		if selected(i) {
			b.WriteString(" " + d.value(v))
		}
	}
	return b.String()
}

func (d *description) value(v *ir.Value) string {
	switch {
	case v == nil:
		return "-"
	case d.flow.constant(v) != nil:
		return d.flow.constant(v).text
	case v.Producer() == nil && d.isOwn(v):
		return fmt.Sprintf("input %d", d.input(v))
	case v.Producer() == d.before && d.before != nil:
		return d.entering(v)
	case v.Producer() == nil || !d.inside(v.Producer()):
		// Equal only where segments read the same value, such as a mask of all layers.
		return fmt.Sprintf("%p", v)
	}
	return fmt.Sprintf("%d.%d", d.visit(v.Producer()), slices.Index(v.Producer().Outputs, v))
}

// entering describes a result of the node before the segment.
func (d *description) entering(v *ir.Value) string {
	if v == stream(d.before) {
		return "in"
	}
	i := slices.Index(d.before.Outputs, v)
	if i == 0 {
		return fmt.Sprintf("%d.0", d.visit(d.before)) // the normalized sum
	}
	return fmt.Sprintf("in %d", i)
}

// input is the number of a graph input of the segment.
func (d *description) input(v *ir.Value) int {
	i := slices.Index(d.segment.inputs, v)
	if i < 0 {
		i = len(d.segment.inputs)
		d.segment.inputs = append(d.segment.inputs, v)
	}
	return i
}

// attributes are those of n as text. Nodes with subgraphs, and those that make images smaller, are equal to no others.
func attributes(n *ir.Node) string {
	var b strings.Builder
	for _, a := range n.Attrs {
		fmt.Fprintf(&b, " %s=%d,%g,%q,%v,%v", a.Name, a.I, a.F, a.S, a.Ints, a.Floats)
		if a.Name == "strides" && slices.ContainsFunc(a.Ints, func(s int64) bool { return s != 1 }) || a.Graph != nil {
			fmt.Fprintf(&b, " %p", n)
		}
	}
	return b.String()
}
