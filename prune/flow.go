package prune

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A flow is the part of a graph that depends on inputs. Values of constant expressions, such as a copy (Identity) of a
// bias that several layers share, or a matrix that is transposed or dequantized, are constants in it, so that layers
// are alike however their weights are stored.
type flow struct {
	nodes     []*ir.Node                   // without those of constant expressions, in topological order
	constants map[*ir.Value]*constantValue // of constant expressions and initializers
	shapes    opset.Shapes                 // for assumed sizes of the inputs
	numbers   map[string]int               // of kinds of constant expressions: their text would double with each level
}

// A constantValue is the value of a constant expression.
type constantValue struct {
	text   string // the same for values of equal element type and shape; for equal expressions where these are not known
	matrix bool   // it has a matrix or a filter
}

// newFlow returns the flow of nodes, which are in topological order.
func newFlow(nodes []*ir.Node) *flow {
	f := &flow{constants: map[*ir.Value]*constantValue{}, shapes: opset.ShapesFor(assumedShapes(nodes)),
		numbers: map[string]int{}}
	for _, n := range nodes {
		inputs := outer(n)
		if len(inputs) == 0 || slices.ContainsFunc(inputs, func(v *ir.Value) bool { return f.constant(v) == nil }) {
			f.nodes = append(f.nodes, n)
			continue
		}
		text, matrix := n.Op.String()+attributes(n), false
		for _, v := range inputs {
			text, matrix = text+" "+f.constant(v).text, matrix || f.constant(v).matrix
		}
		if _, ok := f.numbers[text]; !ok {
			f.numbers[text] = len(f.numbers)
		}
		for i, v := range n.Outputs {
			if v != nil {
				f.constants[v] = &constantValue{fmt.Sprintf("constant %d.%d", f.numbers[text], i), matrix}
			}
		}
		if v := n.Outputs[0]; v != nil {
			if o := pass.Trace(v); o != nil && o.Trouble.None() {
				// The text of an initializer of this type: layers are alike, whether their matrices are transposed in the
				// file or not.
				f.constants[v].text = ir.Spec{DType: o.Elem, Shape: o.Shape}.String()
			}
		}
	}
	return f
}

// constant is the value of v, nil if it depends on inputs, or there is no v.
func (f *flow) constant(v *ir.Value) *constantValue {
	if c := f.constants[v]; c != nil || v == nil || v.Const == nil {
		return c
	}
	c := &constantValue{v.Const.Spec.String(), len(v.Const.Shape) > 1}
	f.constants[v] = c
	return c
}

// outer are the values, other than constants, that a node and the graphs inside it read.
func (f *flow) outer(n *ir.Node) []*ir.Value {
	return slices.DeleteFunc(outer(n), func(v *ir.Value) bool { return f.constant(v) != nil })
}

// outer are the values that a node and the graphs inside it read.
func outer(n *ir.Node) []*ir.Value {
	vs := slices.Clone(n.Inputs())
	for g := range n.Subgraphs() {
		for inner := range g.Nodes() {
			vs = append(vs, outer(inner)...)
		}
		vs = append(vs, g.Outputs...)
	}
	return slices.DeleteFunc(vs, func(v *ir.Value) bool { return v == nil })
}

// assumedSize is that of dynamic axes of inputs: common for images, and no less than the windows of most models.
const assumedSize = 224

// assumedShapes are shapes of the inputs that nodes read.
func assumedShapes(nodes []*ir.Node) map[*ir.Value][]int64 {
	sizes := map[*ir.Value][]int64{}
	for _, n := range nodes {
		for _, v := range outer(n) {
			if v.Producer() != nil || v.Const != nil || v.Type == nil || v.Type.Shape == nil || sizes[v] != nil {
				continue
			}
			shape := make([]int64, len(v.Type.Shape))
			for i, d := range v.Type.Shape {
				if shape[i] = d.N; !d.Known() {
					shape[i] = assumedSize
				}
			}
			sizes[v] = shape
		}
	}
	return sizes
}

// sameSize reports whether the results of a and b have equal sizes, as far as they are known.
func (f *flow) sameSize(a, b *ir.Node) bool {
	x, knownX := f.shapes.Of(stream(a))
	y, knownY := f.shapes.Of(stream(b))
	if !knownX || !knownY {
		return true
	}
	return slices.EqualFunc(x, y, func(p, q ir.Dim) bool { return !p.Known() || !q.Known() || p.N == q.N })
}
