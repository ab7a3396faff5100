package engine_test

import (
	"errors"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A run of exactly the limit of steps succeeds, one of more is a StepError. Large values count several times.
func TestStepsAreLimited(t *testing.T) {
	for _, c := range []struct {
		width int64 // of a row of the scan output
		trips int64
		least int64 // steps of the run
	}{{1, 0, 1}, {1, 10, 41}, {1 << 15, 10, 50}} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		b := &builder{m.Graph}
		b.output(collecting(b, b.input("n", ir.Int64, "1"), c.width))
		in := map[string]*ir.Array{"n": ir.ArrayOf([]int64{c.trips}, 1)}
		steps := func(limit int64) error {
			e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Steps: limit}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			_, err = e.Run(t.Context(), in, nil)
			return err
		}
		n := int64(1)
		for steps(n) != nil && n < 1000 {
			n++
		}
		if n < c.least || n == 1000 {
			t.Errorf("width %d, %d iterations: %d steps", c.width, c.trips, n)
		}
		var over *engine.StepError
		if n > 1 && (!errors.As(steps(n-1), &over) || over.Limit != n-1) {
			t.Errorf("limit %d: got %v", n-1, over)
		}
	}
}

// Folded text counts in the budget of folded constants: nodes whose results exceed it run in each run.
func TestFoldedTextRespectsBudget(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 20}}
	b := &builder{m.Graph}
	s := b.AddConst("s", &ir.Tensor{Spec: ir.Spec{DType: ir.String, Shape: []int64{1}},
		Source: ir.Text(func() ([]string, error) {
			return []string{string(make([]byte, 16<<10))}, nil
		})})
	for range 10 { // 32 KiB to 16 MiB
		s = b.op("StringConcat", s, s)
	}
	b.output(s)
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Weights: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	u, err := e.Usage(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Steps) != 5 { // 32 KiB to 512 KiB fit
		t.Errorf("%d nodes are not folded", len(u.Steps))
	}
}

// A sequence that grows in a loop counts by its length in each iteration, since its items are visited each time;
// iterations share the items.
func TestGrowingSequencesAreLimited(t *testing.T) {
	const trips = 2000
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	b := &builder{m.Graph}
	loop := b.NewNode(ir.OpID{Type: "Loop"}, []*ir.Value{b.input("n", ir.Int64, "1"), nil, b.op("SequenceEmpty")})
	loop.Inputs()[2].Producer().SetAttr(ir.IntAttr("dtype", int64(ir.Int64)))
	body := &builder{ir.NewSubgraph(b.Graph, loop)}
	iteration := body.input("iteration", ir.Int64)
	body.output(body.op("Identity", body.input("going", ir.Bool)))
	items := body.AddValue("items")
	body.Inputs = append(body.Inputs, items)
	body.output(body.op("SequenceInsert", items, iteration))
	loop.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: body.Graph})
	loop.SetOutputs(b.NewValue("list"))
	b.Append(loop)
	stack := b.op("ConcatFromSequence", loop.Outputs[0])
	stack.Producer().SetAttr(ir.IntAttr("axis", 0))
	stack.Producer().SetAttr(ir.IntAttr("new_axis", 1))
	b.output(stack)
	for _, limit := range []int64{trips * 10, trips * 100} {
		e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Steps: limit}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var over *engine.StepError
		out, err := e.Run(t.Context(), map[string]*ir.Array{"n": ir.ArrayOf([]int64{trips}, 1)}, nil)
		if limit == trips*10 {
			if !errors.As(err, &over) {
				t.Errorf("limit %d: got %v", limit, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := ir.View[int64](out[stack.Name])
		if len(got) != trips || got[0] != 0 || got[trips/2] != trips/2 || got[trips-1] != trips-1 {
			t.Errorf("got %d items: %v", len(got), got[:3])
		}
	}
}
