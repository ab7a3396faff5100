package ir

import (
	"strings"
	"testing"
	"time"
)

func TestVerifyComplains(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(m *Model, n *Node)
		want  string
	}{
		{"nothing wrong", func(*Model, *Node) {}, ""},
		{"no opset", func(m *Model, _ *Node) { m.Opsets = nil }, "opset_import"},
		{"an opset of another domain only", func(m *Model, _ *Node) {
			m.Opsets = []Opset{{Domain: "d", Version: 1}}
		}, "opset_import"},
		{"a negative dimension", func(m *Model, _ *Node) {
			m.Graph.AddConst("w", &Tensor{Spec: Spec{DType: Float, Shape: []int64{2, -1}}})
		}, "negative"},
		{"a shape that overflows", func(m *Model, _ *Node) {
			m.Graph.AddConst("w", &Tensor{Spec: Spec{DType: Float, Shape: []int64{1 << 40, 1 << 40}}})
		}, "too many"},
		{"a constant that a node makes", func(_ *Model, n *Node) {
			n.Outputs[0].SetConst(&Tensor{Spec: Spec{DType: Float}})
		}, "constant and an output"},
		{"an output without a use", func(m *Model, _ *Node) { m.Graph.Outputs[0].uses = nil }, "uses"},
		{"an output that nothing makes", func(m *Model, _ *Node) { m.Graph.AddOutput(m.Graph.AddValue("ghost")) }, `"ghost"`},
		{"an input without a use", func(_ *Model, n *Node) { n.inputs[0].uses = nil }, "list this use"},
		{"an input that nothing makes", func(m *Model, n *Node) { n.SetInput(1, m.Graph.AddValue("ghost")) }, `"ghost"`},
		{"an input of a removed constant", func(m *Model, n *Node) {
			v := m.Graph.AddConst("w", &Tensor{Spec: Spec{DType: Float}})
			n.SetInput(1, v)
			m.Graph.RemoveConst(v)
		}, `"w"`},
		{"a value of a function's body", func(m *Model, n *Node) {
			f := m.AddFunction(OpID{Domain: "d", Type: "F"})
			v := f.Body.AddValue("far")
			f.Body.Inputs = append(f.Body.Inputs, v)
			n.SetInput(1, v)
		}, "not visible"},
		{"a use that reads nothing", func(_ *Model, n *Node) {
			n.inputs[0].uses = append(n.inputs[0].uses, Use{Node: n, Index: 7})
		}, "does not read it"},
		{"a use by an output that is none", func(m *Model, n *Node) {
			n.Outputs[0].uses = append(n.Outputs[0].uses, Use{Graph: m.Graph, Index: 3})
		}, "does not read it"},
		{"an output with another producer", func(m *Model, n *Node) {
			n.Outputs = append(n.Outputs, m.Graph.AddValue("y2"))
		}, "another producer"},
		{"a node of another graph", func(m *Model, n *Node) { n.graph = NewModel().Graph }, "links"},
		{"a link back that is wrong", func(_ *Model, n *Node) { n.prev = n }, "links"},
		{"an end that is wrong", func(m *Model, n *Node) { m.Graph.last = m.Graph.first }, "last node"},
		{"a subgraph of another node", func(m *Model, n *Node) {
			n.SetAttr(&Attr{Name: "body", Type: AttrGraph, Graph: NewSubgraph(m.Graph, n.prev)})
		}, "subgraph"},
		{"a subgraph of another graph", func(m *Model, n *Node) {
			n.SetAttr(&Attr{Name: "bodies", Type: AttrGraphs, Graphs: []*Graph{NewSubgraph(NewModel().Graph, n)}})
		}, "subgraph"},
		{"something wrong in a subgraph", func(m *Model, n *Node) {
			g := NewSubgraph(m.Graph, n)
			n.SetAttr(&Attr{Name: "body", Type: AttrGraph, Graph: g})
			g.AddOutput(g.AddValue("ghost"))
		}, `"ghost"`},
		{"something wrong in a function", func(m *Model, _ *Node) {
			b := m.AddFunction(OpID{Domain: "d", Type: "F"}).Body
			b.AddOutput(b.AddValue("ghost"))
		}, `"ghost"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, nodes := chain(3)
			tt.spoil(m, nodes[2])
			err := m.Verify()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A value that every node reads does not make Verify or ReplaceUses quadratic.
func TestManyConsumersAreCheap(t *testing.T) {
	const n = 200_000
	m, nodes := chain(1)
	x := nodes[0].Outputs[0]
	for range n {
		m.Graph.Insert(nil, "Relu", []*Value{x})
	}
	began := time.Now()
	verified(t, m)
	y := m.Graph.Insert(nodes[0], "Neg", []*Value{m.Graph.Inputs[0]})
	x.ReplaceUses(y)
	verified(t, m)
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("took %v; a quadratic walk takes minutes", d)
	}
}
