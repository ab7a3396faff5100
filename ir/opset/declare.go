package opset

import (
	"math/bits"

	"github.com/mcompress/mcompress/ir"
)

// Declare states the element types of results of functions, branches and loop bodies with operators of ONNX Runtime,
// where these do not depend on arguments that are not known. ONNX's shape inference finds no types behind an operator
// that it does not know. It tolerates nodes that need them in the graph of that operator, but not in those around it:
// onnx.checker with full_check refuses them. A graph states types as value_info, which are not used in functions: there
// a Cast to the type that the result has follows.
func Declare(m *ir.Model) {
	c := &checker{checked: map[*ir.Node]bool{}, calls: map[string][]types{}}
	d := declaration{hides: map[*ir.Graph]bool{}}
	for _, root := range append([]*ir.Graph{m.Graph}, bodies(m)...) {
		d.frame = frame{c, map[*ir.Value]types{}}
		d.frame.graph(root)
		d.graph(root)
	}
}

func bodies(m *ir.Model) (list []*ir.Graph) {
	for _, f := range m.Functions {
		list = append(list, f.Body)
	}
	return list
}

type declaration struct {
	frame
	hides map[*ir.Graph]bool // graphs and bodies of functions in which no types are inferred
}

// graph declares what nodes of g return, up to the first operator of ONNX Runtime: what follows it is tolerated.
func (d declaration) graph(g *ir.Graph) {
	tolerated := false
	for n := range g.Nodes() {
		for s := range n.Subgraphs() {
			d.graph(s)
		}
		tolerated = tolerated || contributed(n)
		if tolerated || !d.opaque(n) {
			continue
		}
		for s := range n.Subgraphs() {
			for _, v := range s.Outputs {
				d.state(v)
			}
		}
		for _, v := range n.Outputs {
			if g.Function() == nil {
				d.state(v)
			} else {
				d.cast(n, v)
			}
		}
	}
}

func contributed(n *ir.Node) bool { return n.Op.Domain == Contributed && n.Callee() == nil }

// opaque reports whether n has a graph, or calls one, in which no types are inferred.
func (d declaration) opaque(n *ir.Node) bool {
	if f := n.Callee(); f != nil && d.hidden(f.Body) {
		return true
	}
	for s := range n.Subgraphs() {
		if d.hidden(s) {
			return true
		}
	}
	return false
}

func (d declaration) hidden(g *ir.Graph) bool {
	if h, ok := d.hides[g]; ok {
		return h
	}
	d.hides[g] = false // ends recursion
	for n := range g.Nodes() {
		if contributed(n) || d.opaque(n) {
			d.hides[g] = true
			break
		}
	}
	return d.hides[g]
}

// elem is the type of v; Undefined if it is not known, or no tensor's.
func (d declaration) elem(v *ir.Value) ir.DType {
	t := d.of(v)
	if bits.OnesCount64(uint64(t)) != 1 || t == anyOther {
		return ir.Undefined
	}
	return ir.DType(bits.TrailingZeros64(uint64(t)))
}

func (d declaration) state(v *ir.Value) {
	if v == nil || v.Const != nil || v.Type != nil && v.Type.Elem != ir.Undefined {
		return
	}
	if t := d.elem(v); t != ir.Undefined {
		v.Type = &ir.Type{Elem: t}
	}
}

// cast inserts a Cast of n's output v to its type before the nodes that read it; runtimes remove it.
func (d declaration) cast(n *ir.Node, v *ir.Value) {
	t := d.elem(v)
	if t == ir.Undefined || t == ir.BFloat16 && n.Graph().Opset("") < 13 { // Cast has bfloat16 from opset 13 on
		return
	}
	var out *ir.Value
	for _, u := range append([]ir.Use{}, v.Uses()...) {
		if u.Node == nil || u.Node.Op.Is("Cast") { // which needs no type
			continue
		}
		if out == nil {
			out = n.Graph().Insert(n.Next(), "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(t)))
		}
		u.Node.SetInput(u.Index, out)
	}
}
