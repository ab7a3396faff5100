package main

import (
	"context"
	"encoding/binary"
	"math"
	"os"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// mutateGraph changes a model in one to six places and writes it.
func (c *testCase) mutateGraph(ctx context.Context, source string) error {
	f, err := onnx.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	g := &graphMutator{testCase: c, model: f.Model}
	for range 1 + c.random.IntN(6) {
		g.mutate()
	}
	_, err = onnx.Save(ctx, f.Model, c.model(), onnx.SaveOptions{})
	return err
}

// mutateBytes changes some bytes of the model file, or cuts it.
func (c *testCase) mutateBytes() error {
	text, err := os.ReadFile(c.model())
	if err != nil || len(text) == 0 {
		return err
	}
	for range 1 + c.random.IntN(8) {
		text[c.random.IntN(len(text))] = byte(c.random.IntN(256))
	}
	if c.random.IntN(8) == 0 {
		text = text[:c.random.IntN(len(text))]
	}
	return os.WriteFile(c.model(), text, 0o644)
}

// A graphMutator changes a model.
type graphMutator struct {
	*testCase
	model *ir.Model
}

// mutations are the kinds of changes.
var mutations = []func(*graphMutator, *ir.Graph, *ir.Node){
	(*graphMutator).operator, (*graphMutator).input, (*graphMutator).swap, (*graphMutator).attribute,
	(*graphMutator).attribute,
	(*graphMutator).noAttribute, (*graphMutator).shape, (*graphMutator).payload, (*graphMutator).payload,
	(*graphMutator).dtype,
	(*graphMutator).graphInput, (*graphMutator).version, (*graphMutator).name, (*graphMutator).bypass,
	(*graphMutator).duplicate,
	(*graphMutator).branch, (*graphMutator).output,
}

// mutate makes one change at a random node.
func (g *graphMutator) mutate() {
	graph, node := g.place()
	if node == nil {
		return
	}
	mutations[g.random.IntN(len(mutations))](g, graph, node)
}

// place is a random node, and its graph.
func (g *graphMutator) place() (*ir.Graph, *ir.Node) {
	var nodes []*ir.Node
	var add func(graph *ir.Graph)
	add = func(graph *ir.Graph) {
		for n := range graph.Nodes() {
			nodes = append(nodes, n)
			for s := range n.Subgraphs() {
				add(s)
			}
		}
	}
	add(g.model.Graph)
	for _, f := range g.model.Functions {
		add(f.Body)
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	n := nodes[g.random.IntN(len(nodes))]
	return n.Graph(), n
}

// values are the inputs, constants and results of a graph.
func values(graph *ir.Graph) []*ir.Value {
	vs := append(append([]*ir.Value{}, graph.Inputs...), graph.Consts()...)
	for n := range graph.Nodes() {
		for _, v := range n.Outputs {
			if v != nil {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

func pick[T any](g *graphMutator, list []T) T { return list[g.random.IntN(len(list))] }

// number is an integer that is small, or at a limit.
func (g *graphMutator) number() int64 {
	return pick(g, []int64{0, 1, -1, 2, 3, 7, 16, 255, 1 << 20, 1 << 31, 1 << 40, math.MaxInt64, math.MinInt64})
}

// operator gives a node the operator of another node.
func (g *graphMutator) operator(_ *ir.Graph, n *ir.Node) {
	_, other := g.place()
	n.Op = other.Op
}

// input replaces an input by another value, which may be computed later, or by none.
func (g *graphMutator) input(graph *ir.Graph, n *ir.Node) {
	if len(n.Inputs()) == 0 {
		return
	}
	n.SetInput(g.random.IntN(len(n.Inputs())), pick(g, append(values(graph), nil)))
}

func (g *graphMutator) swap(_ *ir.Graph, n *ir.Node) {
	k := len(n.Inputs())
	if k < 2 {
		return
	}
	i, j := g.random.IntN(k), g.random.IntN(k)
	a, b := n.Input(i), n.Input(j)
	n.SetInput(i, b)
	n.SetInput(j, a)
}

// attribute changes or adds an attribute.
func (g *graphMutator) attribute(_ *ir.Graph, n *ir.Node) {
	if len(n.Attrs) == 0 {
		n.SetAttr(ir.IntAttr(pick(g, []string{"axis", "to", "block_size", "group", "bits", "K"}), g.number()))
		return
	}
	switch a := pick(g, n.Attrs); a.Type {
	case ir.AttrInt:
		n.SetAttr(ir.IntAttr(a.Name, g.number()))
	case ir.AttrInts:
		is := append([]int64{}, a.Ints...)
		if len(is) == 0 || g.random.IntN(4) == 0 {
			is = append(is, g.number())
		} else {
			is[g.random.IntN(len(is))] = g.number()
		}
		n.SetAttr(ir.IntsAttr(a.Name, is...))
	case ir.AttrFloat:
		n.SetAttr(ir.FloatAttr(a.Name, pick(g, []float32{0, -1, 1e-30, 1e30, float32(math.Inf(1)),
			float32(math.NaN())})))
	case ir.AttrString:
		n.SetAttr(ir.StringAttr(a.Name, pick(g, []string{"", "SAME_UPPER", "x", "\x1b[2J"})))
	}
}

func (g *graphMutator) noAttribute(_ *ir.Graph, n *ir.Node) {
	if len(n.Attrs) > 0 {
		n.RemoveAttr(pick(g, n.Attrs).Name)
	}
}

// constant is a random constant of the graph, nil without one.
func (g *graphMutator) constant(graph *ir.Graph) *ir.Value {
	if len(graph.Consts()) == 0 {
		return nil
	}
	return pick(g, graph.Consts())
}

// shape gives a constant another shape, most often one of as many elements.
func (g *graphMutator) shape(graph *ir.Graph, _ *ir.Node) {
	v := g.constant(graph)
	if v == nil {
		return
	}
	n := v.Const.Elems()
	s := pick(g, [][]int64{{n}, {1, n}, {n, 1}, {1, 1, n}, {}, {0}, {n, 0}, append([]int64{1}, v.Const.Shape...)})
	t := *v.Const
	t.Shape = s
	if t.Elems() != n {
		t.Source = ir.Mem(make([]byte, t.Bytes()))
	}
	v.SetConst(&t)
}

// payload replaces the elements of a constant: all zeros, equal numbers, or numbers at a limit here and there.
func (g *graphMutator) payload(graph *ir.Graph, _ *ir.Node) {
	v := g.constant(graph)
	if v == nil || v.Const.Bytes() > 1<<20 || v.Const.DType == ir.String {
		return
	}
	b := make([]byte, v.Const.Bytes())
	bits := pick(g, []float32{0, 1, -3e38, 3e38, 1e-40, 1e-30, float32(math.Inf(1)), float32(math.NaN())})
	every := pick(g, []int{4, 8, 400})
	for i := 0; i+4 <= len(b); i += 4 {
		f := float32(g.random.NormFloat64())
		if i%every == 0 {
			f = bits
		}
		binary.LittleEndian.PutUint32(b[i:], math.Float32bits(f))
	}
	if g.random.IntN(4) == 0 {
		clear(b)
	}
	t := *v.Const
	t.Source = ir.Mem(b)
	v.SetConst(&t)
}

// dtype gives a constant another element type, with zeros.
func (g *graphMutator) dtype(graph *ir.Graph, _ *ir.Node) {
	v := g.constant(graph)
	if v == nil || v.Const.Bytes() > 1<<20 {
		return
	}
	t := &ir.Tensor{Spec: ir.Spec{DType: pick(g, []ir.DType{ir.Float, ir.Float16, ir.BFloat16, ir.Double, ir.Int8,
		ir.Uint8, ir.Int64, ir.Int32, ir.Bool}), Shape: v.Const.Shape}}
	t.Source = ir.Mem(make([]byte, t.Bytes()))
	v.SetConst(t)
}

// graphInput changes the type of an input of the model.
func (g *graphMutator) graphInput(*ir.Graph, *ir.Node) {
	if len(g.model.Graph.Inputs) == 0 {
		return
	}
	v := pick(g, g.model.Graph.Inputs)
	if v.Type == nil {
		return
	}
	t := ir.Type{Elem: v.Type.Elem, Shape: append([]ir.Dim{}, v.Type.Shape...)}
	switch d := (ir.Dim{N: g.number()}); {
	case len(t.Shape) == 0 || g.random.IntN(6) == 0:
		t.Shape = append(t.Shape, d)
	case g.random.IntN(3) == 0:
		t.Shape[g.random.IntN(len(t.Shape))] = ir.Dim{N: -1,
			Param: pick(g, []string{"", "n", "batch", "total_past_len"})}
	default:
		t.Shape[g.random.IntN(len(t.Shape))] = d
	}
	v.Type = &t
}

// version changes an opset or the IR version.
func (g *graphMutator) version(*ir.Graph, *ir.Node) {
	if g.random.IntN(3) == 0 || len(g.model.Opsets) == 0 {
		g.model.IRVersion = pick(g, []int64{0, 3, 4, 8, 13, 100, -1})
		return
	}
	g.model.Opsets[g.random.IntN(len(g.model.Opsets))].Version = pick(g, []int64{0, 1, 7, 10, 13, 17, 21, 25, 1000, -1})
}

// name gives a value or a node a name that programs may mistake for something else.
func (g *graphMutator) name(graph *ir.Graph, n *ir.Node) {
	text := pick(g, []string{"", "\x1b]0;x\a", "a\nb", "../../x", "-o", "a\x00b", "*", "op:MatMul", "\u202ex", "%s%n"})
	if g.random.IntN(2) == 0 {
		n.Name = text
		return
	}
	if vs := values(graph); len(vs) > 0 {
		pick(g, vs).Name = text
	}
}

// bypass replaces a node by one of its inputs.
func (g *graphMutator) bypass(_ *ir.Graph, n *ir.Node) {
	if len(n.Inputs()) == 0 || len(n.Outputs) == 0 || n.Outputs[0] == nil {
		return
	}
	if v := pick(g, n.Inputs()); v != nil {
		n.Outputs[0].ReplaceUses(v)
	}
}

// duplicate adds a copy of a node, whose result is an output.
func (g *graphMutator) duplicate(graph *ir.Graph, n *ir.Node) {
	v := graph.InsertN(nil, n.Op.Type, max(1, len(n.Outputs)), n.Inputs(), n.Attrs...)[0]
	graph.AddOutput(v)
}

// branch moves the use of a value into the branches of an If.
func (g *graphMutator) branch(graph *ir.Graph, n *ir.Node) {
	if len(n.Outputs) == 0 || n.Outputs[0] == nil {
		return
	}
	condition := graph.AddConst("condition", &ir.Tensor{Spec: ir.Spec{DType: ir.Bool},
		Source: ir.Mem{byte(g.random.IntN(2))}})
	owner := graph.NewNode(ir.OpID{Type: "If"}, []*ir.Value{condition})
	for _, name := range []string{"then_branch", "else_branch"} {
		sub := ir.NewSubgraph(graph, owner)
		sub.AddOutput(sub.Insert(nil, "Identity", []*ir.Value{n.Outputs[0]}))
		owner.Attrs = append(owner.Attrs, &ir.Attr{Name: name, Type: ir.AttrGraph, Graph: sub})
	}
	result := graph.NewValue("chosen")
	owner.SetOutputs(result)
	graph.Append(owner)
	graph.AddOutput(result)
}

// output removes the outputs of the model, or adds one.
func (g *graphMutator) output(*ir.Graph, *ir.Node) {
	if g.random.IntN(3) == 0 {
		g.model.Graph.SetOutputs()
		return
	}
	if vs := values(g.model.Graph); len(vs) > 0 {
		g.model.Graph.AddOutput(pick(g, vs))
	}
}
