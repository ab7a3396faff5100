package report

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// chainOfConstants is a model of n nodes that each read the output of the one before twice, from a constant of 4 floats on: 2^n paths.
func chainOfConstants(op string, n int) *ir.Value {
	g := ir.NewModel().Graph
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4}}, Source: ir.Floats(1, 2, 3, 4)})
	v := w
	for range n {
		v = g.Insert(nil, op, []*ir.Value{v, v})
	}
	g.AddOutput(g.Insert(nil, "Add", []*ir.Value{g.AddValue("x"), v}))
	return w
}

func TestEachNodeOfAConstantExpressionIsVisitedOnce(t *testing.T) {
	for _, op := range []string{"Mul", "Concat", "Reshape"} {
		w := chainOfConstants(op, 100_000)
		if got := newConstants(w.Graph().Model()).loadedBytes(w); got != 16 {
			t.Errorf("%s: got %d bytes, want those of 4 floats", op, got)
		}
	}
}

// Without a bound each of n constants would be followed through up to n nodes.
func TestConstantsOfOneExpressionAreFollowedLinearly(t *testing.T) {
	m := ir.NewModel()
	g := m.Graph
	v := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: ir.Floats(1)})
	for range 50_000 {
		w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1}}, Source: ir.Floats(1)})
		v = g.Insert(nil, "Concat", []*ir.Value{v, w})
	}
	g.AddOutput(v)
	all := newConstants(m)
	bound := all.steps
	for _, w := range g.Consts() {
		if all.loadedBytes(w) != 4 {
			t.Fatalf("%s: not the bytes in the file", w.Name)
		}
	}
	if followed := bound - all.steps; followed > bound+2*len(g.Consts()) {
		t.Errorf("%d steps, want at most %d", followed, bound)
	}
}
