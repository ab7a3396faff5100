package prune

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// stack is a model of so many residual layers x + relu(x·w), between an entrance and an exit of other shapes; a mask is read by
// all.
func stack(layers int) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x, mask := g.AddValue("x"), g.AddValue("mask")
	g.Inputs = []*ir.Value{x, mask}
	weight := func(name string, shape ...int64) *ir.Value {
		s := ir.Spec{DType: ir.Float, Shape: shape}
		return g.AddConst(name, &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})
	}
	h := g.Insert(nil, "MatMul", []*ir.Value{x, weight("in", 3, 8)})
	for i := range layers {
		y := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{h, weight(fmt.Sprintf("w%d", i), 8, 8)})})
		h = g.Insert(nil, "Add", []*ir.Value{h, g.Insert(nil, "Mul", []*ir.Value{y, mask})})
	}
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{h, weight("out", 8, 2)}))
	return m
}

// constants are the names of the constants of m.
func constants(m *ir.Model) []string {
	var names []string
	for _, v := range m.Graph.Consts() {
		names = append(names, v.Name)
	}
	return names
}

func TestLayersThatStayAreSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		layers int
		amount float64
		want   []string
	}{
		{6, 0.5, []string{"in", "w0", "w2", "w5", "out"}},
		{4, 0.5, []string{"in", "w0", "w3", "out"}},
		{4, 0.25, []string{"in", "w0", "w2", "w3", "out"}},
		{3, 1, []string{"in", "w2", "out"}},
		{5, 0, []string{"in", "w0", "w1", "w2", "w3", "w4", "out"}},
		{1, 0.5, []string{"in", "w0", "out"}},
	} {
		m := stack(c.layers)
		nodes, err := m.Graph.Order()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range repetitions(nodes) {
			Layers{Amount: c.amount}.leaveOut(r)
		}
		if err := m.Verify(); err != nil {
			t.Fatal(err)
		}
		if got := constants(m); !slices.Equal(got, c.want) {
			t.Errorf("%d layers, %v left out: %v stay, want %v", c.layers, c.amount, got, c.want)
		}
	}
}

// TestLayersOfOtherShapesStay: layers that do not follow one of their kind are not repeated.
func TestLayersOfOtherShapesStay(t *testing.T) {
	m := stack(0)
	nodes, err := m.Graph.Order()
	if err != nil {
		t.Fatal(err)
	}
	if runs := repetitions(nodes); len(runs) != 0 {
		t.Errorf("%d runs in a model without repeated layers", len(runs))
	}
}
