package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// filled is a model that multiplies its input by a constant of n elements, which it computes from eight bytes.
func filled(n int64) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}}}
	g.Inputs = append(g.Inputs, x)
	shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}},
		Source: ir.Mem(ir.ArrayOf([]int64{n}, 1).Data)})
	big := g.Insert(nil, "ConstantOfShape", []*ir.Value{shape})
	y := g.Insert(nil, "Mul", []*ir.Value{x, big})
	y.Name = "y"
	g.AddOutput(y)
	return m
}

// Constant folding stays within the memory limit; beyond it the plan reports the memory of a run, and nothing is
// allocated.
func TestFoldedConstantsRespectMemoryLimit(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct {
		n      int64
		ahead  bool
		planOf bool
	}{{1000, true, true}, {limit / 4, false, true}, {1 << 40, false, true}, {limit / 4, false, false}} {
		e, err := engine.Open(t.Context(), filled(c.n),
			engine.Options{Workers: 1, Limits: memory.Limits{Memory: limit}, PlanOnly: c.planOf})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		u, err := e.Usage(map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{1}}})
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		for _, s := range u.Steps {
			ran = ran || strings.HasSuffix(s.Op, "ConstantOfShape")
		}
		if ran == c.ahead || !c.ahead && u.Plan.Size < 4*c.n {
			t.Errorf("%d elements: folded %v, want %v; the arena has %d bytes", c.n, !ran, c.ahead, u.Plan.Size)
		}
	}
}

// Intermediate results of a folded chain do not use up the budget: only its result is held. A view holds its input.
func TestFoldedChainsReturnBudget(t *testing.T) {
	const n = 64 << 10
	for limit, steps := range map[int64]int{20 * n: 1, 12 * n: 5} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 21}}
		b := &builder{m.Graph}
		x := b.AddConst("packed", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{n}},
			Source: ir.Mem(make([]byte, n))})
		x = b.op("Reshape", b.cast(x, ir.Int64), b.ints(-1, 1))
		for range 3 {
			x = b.op("Div", x, b.ints(16))
		}
		b.output(b.op("Mul", b.cast(x, ir.Float), b.input("x", ir.Float, "1")))
		e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Weights: limit}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		u, err := e.Usage(map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{1}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Steps) != steps {
			t.Errorf("limit %d: %d steps are not folded, want %d", limit, len(u.Steps), steps)
		}
	}
}

// A node of folded inputs is folded also if its first output is omitted.
func TestFoldedNodeWithoutFirstOutput(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	const n = 1 << 16 // more than what is folded before fusions
	x := make([]float32, n)
	x[7], x[5] = -2, -1
	c := b.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{n}},
		Source: ir.Mem(ir.ArrayOf(x, n).Data)})
	k := b.AddConst("k", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}},
		Source: ir.Mem(ir.ArrayOf([]int64{2}, 1).Data)})
	top := b.NewNode(ir.OpID{Type: "TopK"}, []*ir.Value{b.op("Neg", c), k})
	at := b.NewValue("at")
	top.SetOutputs(nil, at)
	b.Append(top)
	b.output(b.op("Add", b.input("n", ir.Int64, "1"), at))
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out, err := e.Run(t.Context(), map[string]*ir.Array{"n": ir.ArrayOf([]int64{10}, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out {
		if got := ir.View[int64](a); !slices.Equal(got, []int64{17, 15}) {
			t.Errorf("got %v", got)
		}
	}
}
