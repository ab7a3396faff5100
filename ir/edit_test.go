package ir

import (
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chain is a model of an input x and Relus one after the other, the last an output.
func chain(n int) (*Model, []*Node) {
	m := NewModel()
	m.Opsets = []Opset{{Version: 21}}
	v := m.Graph.AddValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, v)
	var nodes []*Node
	for range n {
		v = m.Graph.Insert(nil, "Relu", []*Value{v})
		nodes = append(nodes, v.Producer())
	}
	m.Graph.AddOutput(v)
	return m, nodes
}

func verified(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *Model) {
	t.Helper()
	if err := m.Verify(); err != nil {
		t.Fatalf("Verify: %v", err)
	}
}

func ops(g *Graph) string {
	var s []string
	for n := range g.Nodes() {
		s = append(s, n.Op.Type)
	}
	return strings.Join(s, " ")
}

// An editor edits a model at random, as passes do.
type editor struct {
	model  *Model
	graphs []*Graph // the main graph, then the branches of an If
	values []*Value // made at some time, removed ones among them
}

func newEditor() *editor {
	m := NewModel()
	m.Opsets = []Opset{{Version: 21}}
	e := &editor{model: m, graphs: []*Graph{m.Graph}}
	x := m.Graph.AddValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	e.values = append(e.values, x)
	owner := m.Graph.NewNode(OpID{Type: "If"}, []*Value{x})
	m.Graph.Append(owner)
	for _, name := range []string{"then_branch", "else_branch"} {
		g := NewSubgraph(m.Graph, owner)
		owner.SetAttr(&Attr{Name: name, Type: AttrGraph, Graph: g})
		e.graphs = append(e.graphs, g)
	}
	out := m.Graph.NewValue("chosen")
	owner.SetOutputs(out)
	m.Graph.AddOutput(out)
	return e
}

// visible are the values that a node of g may read.
func (e *editor) visible(g *Graph) []*Value {
	return slices.DeleteFunc(slices.Clone(e.values), func(v *Value) bool { return v.Removed() || !v.Graph().encloses(g) })
}

func (e *editor) operands(t *rapid.T, g *Graph) []*Value {
	vs := make([]*Value, rapid.IntRange(0, 3).Draw(t, "inputs"))
	for i := range vs {
		if rapid.Bool().Draw(t, "present") {
			vs[i] = rapid.SampledFrom(e.visible(g)).Draw(t, "operand")
		}
	}
	return vs
}

func (e *editor) nodes(g *Graph) []*Node { return slices.Collect(g.Nodes()) }

func (e *editor) graph(t *rapid.T) *Graph { return rapid.SampledFrom(e.graphs).Draw(t, "graph") }

func (e *editor) insert(t *rapid.T) {
	g := e.graph(t)
	var at *Node
	if ns := e.nodes(g); len(ns) > 0 && rapid.Bool().Draw(t, "before") {
		at = rapid.SampledFrom(ns).Draw(t, "at")
	}
	e.values = append(e.values, g.InsertN(at, "Op", rapid.IntRange(1, 2).Draw(t, "outputs"), e.operands(t, g))...)
}

func (e *editor) addConst(t *rapid.T) {
	e.values = append(e.values, e.graph(t).AddConst("c", &Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))}))
}

func (e *editor) setInput(t *rapid.T) {
	g := e.graph(t)
	ns := e.nodes(g)
	if len(ns) == 0 {
		t.Skip("no nodes")
	}
	n := rapid.SampledFrom(ns).Draw(t, "node")
	i := rapid.IntRange(0, 4).Draw(t, "index")
	if rapid.Bool().Draw(t, "trim") {
		n.TrimInputs(i)
		return
	}
	n.SetInput(i, rapid.SampledFrom(e.visible(g)).Draw(t, "value"))
}

func (e *editor) replaceUses(t *rapid.T) {
	v := rapid.SampledFrom(e.visible(e.model.Graph)).Draw(t, "old")
	w := rapid.SampledFrom(e.visible(e.model.Graph)).Draw(t, "new")
	outputs := names(e.model.Graph.Outputs)
	v.ReplaceUses(w)
	if v != w && len(v.Uses()) > 0 {
		t.Fatalf("%q is still read", v.Name)
	}
	if got := names(e.model.Graph.Outputs); !slices.Equal(got, outputs) && v.Producer() != nil && !v.IsInput() {
		t.Fatalf("outputs were called %q, now %q", outputs, got)
	}
}

func names(vs []*Value) []string {
	var s []string
	for _, v := range vs {
		s = append(s, v.Name)
	}
	return s
}

func (e *editor) drop(t *rapid.T) {
	v := rapid.SampledFrom(e.visible(e.model.Graph)).Draw(t, "value")
	used := len(v.Uses()) > 0
	v.Drop()
	if used && v.Removed() {
		t.Fatalf("%q was removed although it is read", v.Name)
	}
	e.forget()
}

// remove removes a node without consumers.
func (e *editor) remove(t *rapid.T) {
	ns := slices.DeleteFunc(e.nodes(e.graph(t)), func(n *Node) bool {
		return slices.ContainsFunc(n.Outputs, func(v *Value) bool { return len(v.Uses()) > 0 })
	})
	if len(ns) == 0 {
		t.Skip("every node is read")
	}
	rapid.SampledFrom(ns).Draw(t, "node").Remove()
	e.forget()
}

// forget drops the branches of an If that is gone, and what they held.
func (e *editor) forget() {
	gone := func(g *Graph) bool { return g.Owner != nil && g.Owner.Graph() == nil }
	e.graphs = slices.DeleteFunc(e.graphs, gone)
	e.values = slices.DeleteFunc(e.values, func(v *Value) bool { return gone(v.Graph()) })
}

// Whatever is edited in whatever order: lists of uses are exactly the inputs and
// outputs that read a value, names are free, and Verify agrees.
func TestEditsKeepTheModelWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEditor()
		t.Repeat(map[string]func(*rapid.T){
			"insert": e.insert, "const": e.addConst, "input": e.setInput,
			"replace": e.replaceUses, "drop": e.drop, "remove": e.remove,
			"": func(t *rapid.T) {
				verified(t, e.model)
				usesAreReads(t, e.model)
				namesDiffer(t, e.model)
			},
		})
	})
}

// usesAreReads counts every read of the model and compares with the lists of uses.
func usesAreReads(t *rapid.T, m *Model) {
	reads := map[*Value]map[Use]bool{}
	add := func(v *Value, u Use) {
		if v == nil {
			return
		}
		if reads[v] == nil {
			reads[v] = map[Use]bool{}
		}
		reads[v][u] = true
	}
	for g := range m.Graphs() {
		for i, v := range g.Outputs {
			add(v, Use{Graph: g, Index: i})
		}
		for n := range g.Nodes() {
			for i, v := range n.Inputs() {
				add(v, Use{Node: n, Index: i})
			}
		}
	}
	for v := range m.Values() {
		if len(v.Uses()) != len(reads[v]) {
			t.Fatalf("%q lists %d uses, is read %d times", v.Name, len(v.Uses()), len(reads[v]))
		}
		for _, u := range v.Uses() {
			if !reads[v][u] {
				t.Fatalf("%q lists a use that is none", v.Name)
			}
		}
	}
}

func namesDiffer(t *rapid.T, m *Model) {
	by := map[string]*Value{}
	for v := range m.Values() {
		if old := by[v.Name]; old != nil && old != v {
			t.Fatalf("two values are called %q", v.Name)
		}
		by[v.Name] = v
	}
}

func TestReplaceUsesKeepsTheOutputsName(t *testing.T) {
	m, nodes := chain(2)
	old := nodes[1].Outputs[0]
	old.Type = &Type{Elem: Float}
	name := old.Name
	w := m.Graph.Insert(nil, "Neg", []*Value{nodes[0].Outputs[0]})
	old.ReplaceUses(w)
	if got := m.Graph.Outputs[0]; got != w || got.Name != name || got.Type != old.Type {
		t.Errorf("the output is %q of %v, want %q with the old type", got.Name, got.Type, name)
	}
	old.Drop()
	verified(t, m)
	if got := ops(m.Graph); got != "Relu Neg" {
		t.Errorf("nodes %q, want the replaced one gone", got)
	}
}

func TestDropTakesWhatNothingElseNeeds(t *testing.T) {
	m, nodes := chain(1)
	g := m.Graph
	shared := g.AddConst("shared", &Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	alone := g.AddConst("alone", &Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	g.Insert(nodes[0], "Add", []*Value{shared, g.Inputs[0]})
	a := g.Insert(nil, "Mul", []*Value{alone, shared})
	b := g.Insert(nil, "Neg", []*Value{a, a})
	b.Drop()
	verified(t, m)
	if got := ops(g); got != "Add Relu" {
		t.Errorf("nodes %q", got)
	}
	if !alone.Removed() || shared.Removed() || len(g.Consts()) != 1 {
		t.Errorf("constants left: %q", names(g.Consts()))
	}
	if g.Inputs[0].Removed() {
		t.Error("a graph input was removed")
	}
}

func TestDropTakesWhatASubgraphRead(t *testing.T) {
	m, _ := chain(1)
	g := m.Graph
	outer := g.AddConst("outer", &Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	owner := g.NewNode(OpID{Type: "If"}, []*Value{g.Inputs[0]})
	sub := NewSubgraph(g, owner)
	owner.SetAttr(&Attr{Name: "then_branch", Type: AttrGraph, Graph: sub})
	inner := sub.AddConst("inner", &Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	sub.AddOutput(sub.Insert(nil, "Add", []*Value{outer, inner}))
	out := g.NewValue("y")
	owner.SetOutputs(out)
	g.Append(owner)
	verified(t, m)
	out.Drop()
	verified(t, m)
	if !outer.Removed() || len(outer.Uses()) != 0 {
		t.Errorf("the constant that only the subgraph read has %d uses", len(outer.Uses()))
	}
}

func TestRemoveConstOfAnInput(t *testing.T) {
	m, _ := chain(1)
	x := m.Graph.Inputs[0]
	x.SetConst(&Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	m.Graph.RemoveConst(x)
	if x.Const != nil || x.Removed() {
		t.Error("the input keeps its default value or is gone")
	}
	verified(t, m)
}

func TestRemoveInputKeepsTheInitializer(t *testing.T) {
	m, _ := chain(1)
	x := m.Graph.Inputs[0]
	x.SetConst(&Tensor{Spec: Spec{DType: Float}, Source: Mem(make([]byte, 4))})
	m.Graph.RemoveInput(x)
	verified(t, m)
	if len(m.Graph.Inputs) != 0 || len(m.Graph.Consts()) != 1 {
		t.Errorf("%d inputs and %d constants", len(m.Graph.Inputs), len(m.Graph.Consts()))
	}
}

func TestNodesMayBeEditedWhileRanging(t *testing.T) {
	m, _ := chain(4)
	for n := range m.Graph.Nodes() {
		v := m.Graph.Insert(n, "Neg", []*Value{n.Input(0)})
		n.Outputs[0].ReplaceUses(v)
		n.Remove()
	}
	verified(t, m)
	if got := ops(m.Graph); got != "Neg Neg Neg Neg" {
		t.Errorf("nodes %q", got)
	}
}

func TestFreeNames(t *testing.T) {
	m := NewModel()
	g := m.Graph
	for _, name := range []string{"t", "t2", "t3", "w"} {
		g.Inputs = append(g.Inputs, g.AddValue(name))
	}
	f := m.AddFunction(OpID{Domain: "d", Type: "F"})
	f.Body.Inputs = append(f.Body.Inputs, f.Body.AddValue("u"))
	taken := map[string]bool{"t": true, "t2": true, "t3": true, "w": true, "u": true}
	for _, hint := range []string{"t", "t", "w", "u", "t2", "new", "new", "t"} {
		v := g.NewValue(hint)
		if taken[v.Name] {
			t.Errorf("%q was given out twice", v.Name)
		}
		if !strings.HasPrefix(v.Name, hint) {
			t.Errorf("%q does not come from %q", v.Name, hint)
		}
		taken[v.Name] = true
	}
	if !taken["new"] {
		t.Error("a hint that is free was not taken as it is")
	}
}

func TestAttributes(t *testing.T) {
	n := NewModel().Graph.NewNode(OpID{Type: "Op"}, nil, IntAttr("i", 3), FloatAttr("f", 0.5))
	n.SetAttr(IntAttr("i", 4))
	n.SetAttr(StringAttr("s", "x"))
	if n.Int("i", 0) != 4 || n.Int("none", 7) != 7 || n.Float("f", 0) != 0.5 || n.Float("none", 2) != 2 {
		t.Errorf("attributes read %d %d %g %g", n.Int("i", 0), n.Int("none", 7), n.Float("f", 0), n.Float("none", 2))
	}
	n.RemoveAttr("i")
	n.RemoveAttr("none")
	if n.Attr("i") != nil || len(n.Attrs) != 2 {
		t.Errorf("%d attributes left", len(n.Attrs))
	}
	n.SetAttr(&Attr{Name: "i", Type: AttrInt, I: 9, Ref: "outer"})
	if n.Int("i", 1) != 1 {
		t.Error("a reference was taken for a value")
	}
}

// Recursion would need a stack as deep as the chain, and lists that close gaps would take minutes.
func TestDropOfALongChain(t *testing.T) {
	const n = 200_000
	g := NewModel().Graph
	v := g.AddConst("w", &Tensor{Spec: Spec{DType: Float, Shape: []int64{1}}})
	for range n {
		w := g.AddConst("w", &Tensor{Spec: Spec{DType: Float, Shape: []int64{1}}})
		v = g.Insert(nil, "Add", []*Value{v, w})
	}
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	v.Drop()
	if g.First() != nil || len(g.Consts()) != 0 {
		t.Errorf("%d constants are left", len(g.Consts()))
	}
}
