package report

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// chainOfConstants is a model of n nodes that each read the output of the one before twice, from a constant of 4 floats
// on: 2^n paths.
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

// Indices into a codebook become weights of the codebook's type, which is not that of the indices.
func TestDenseWeightsOfIndicesHaveTheTypeOfTheWeight(t *testing.T) {
	m := ir.NewModel()
	g := m.Graph
	at := g.AddConst("indices", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{3, 100}},
		Source: ir.Mem(make([]byte, 300))})
	entries := g.AddConst("codebook", &ir.Tensor{Spec: ir.Spec{DType: ir.Float16, Shape: []int64{2}},
		Source: ir.Mem(make([]byte, 4))})
	g.AddOutput(g.Insert(nil, "Gather",
		[]*ir.Value{entries, g.Insert(nil, "Cast", []*ir.Value{at}, ir.IntAttr("to", int64(ir.Int32)))}))
	for weight, want := range map[ir.DType]int64{ir.Float16: 600, ir.Float: 1200, ir.Double: 2400} {
		before := &ir.Tensor{Spec: ir.Spec{DType: weight, Shape: []int64{300}}}
		if got := newConstants(m).folding(at).dense(before); got != want {
			t.Errorf("indices of a %v weight: %d bytes, want %d", weight, got, want)
		}
	}
}
