package engine

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Runs on sizes that grow and shrink have the outputs of a session that runs on one size, later runs do not change
// them, and plans of similar sizes share an arena.
func TestRunsOfGrowingSizes(t *testing.T) {
	ctx := context.Background()
	m := relus()
	hidden := m.Graph.Outputs[0].Producer().Inputs()[0]
	m.Graph.AddOutput(hidden) // of the size of the other output, but read by a step
	x := m.Graph.Inputs[0]
	m.Graph.AddOutput(m.Graph.Insert(nil, "Flatten", []*ir.Value{m.Graph.Insert(nil, "Abs", []*ir.Value{x})})) // a view
	// of the same size always
	m.Graph.AddOutput(m.Graph.Insert(nil, "ReduceSum", []*ir.Value{x}))
	open := func() *Interpreter {
		e, err := Open(ctx, m, Options{Workers: 2, NoFusion: true})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	defer e.Close()
	var want, got []map[string]*ir.Array
	for _, n := range []int64{400, 401, 402, 403, 390, 470, 1, 2, 402, 500} {
		in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, n, 64)}
		for i := range ir.View[float32](in["x"]) {
			ir.View[float32](in["x"])[i] = float32(int64(i)%97-n%31) / 50
		}
		once := open()
		w, err := once.Run(ctx, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := e.Run(ctx, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, got = append(want, w), append(got, g)
		if err := once.Close(); err != nil {
			t.Fatal(err)
		}
		if n == 403 {
			if exact := e.prog.plans.entries[3].plan.memory.Size; e.Memory().Idle > 2*exact+exact/4 {
				t.Errorf("%d idle bytes of four plans that need %d or little more", e.Memory().Idle, exact)
			}
			if e.prog.plans.entries[0].plan.capacity != e.prog.plans.entries[2].plan.capacity {
				t.Error("plans of 401 and 403 rows have different offsets")
			}
		}
	}
	for i := range want {
		for name, w := range want[i] {
			if !slices.Equal(w.Data, got[i][name].Data) || !slices.Equal(w.Shape, got[i][name].Shape) {
				t.Errorf("run %d: output %q is %s, want %s, or has other elements", i, name, got[i][name], w)
			}
		}
	}
}

// A plan that gets the arena of another one has nothing that operators kept for its types.
func TestKeptOfAnotherSize(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	c := chain{m.Graph, rand.New(rand.NewPCG(1, 2))}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 16}, {N: -1}, {N: -1}}}
	m.Graph.Inputs = []*ir.Value{x}
	m.Graph.AddOutput(c.op("Relu", c.pointwise(c.depthwise(c.op("Neg", x), 16, 3), 16, 32)))
	e := openChain(t, m, 2)
	for _, n := range []int64{40, 41, 42, 40} {
		in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, 1, 16, n, 82-n)}
		for i := range ir.View[float32](in["x"]) {
			ir.View[float32](in["x"])[i] = float32(c.NormFloat64())
		}
		want := runChain(t, openChain(t, m, 2), in)
		for range 2 {
			if got := runChain(t, e, in); !bytes.Equal(got.Data, want.Data) {
				t.Errorf("images of %d rows: the output differs from that of a session with one size", n)
			}
		}
	}
	if entries := e.prog.plans.entries; entries[1].plan.capacity != entries[2].plan.capacity {
		t.Error("no plan had the arena of another one")
	}
}

func runChain(t *testing.T, e *Interpreter, in map[string]*ir.Array) *ir.Array {
	t.Helper()
	out, err := e.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[e.Outputs()[0].Name]
}
