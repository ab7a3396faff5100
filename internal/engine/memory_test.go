package engine

import (
	"context"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// relus returns a model of two nodes Relu; the shape of its input is dynamic.
func relus() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1}, {N: 64}}}
	m.Graph.Inputs = []*ir.Value{x}
	m.Graph.AddOutput(m.Graph.Insert(nil, "Exp", []*ir.Value{m.Graph.Insert(nil, "Neg", []*ir.Value{x})}))
	return m
}

// Between runs a session has arenas of at most keptPlans plans; memory that an operator counts and does not release
// remains.
func TestMemoryBetweenRuns(t *testing.T) {
	for name, leak := range map[string]int64{"none": 0, "leaking operator": 100} {
		e, err := Open(context.Background(), relus(), Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		first := e.prog.steps[0]
		run := first.op.Run
		leaking := *first.op
		leaking.Run = func(c *op.Call) error {
			if err := c.Account.Take(leak); err != nil {
				return err
			}
			return run(c)
		}
		first.op = &leaking
		for i := range 10 {
			if _, err := e.Run(context.Background(), map[string]*ir.Array{"x": ir.NewArray(ir.Float, int64(1+i), 64)},
				nil); err != nil {
				t.Fatal(err)
			}
			// 32 KiB of scratch memory each
			if m := e.Memory(); m.Running != leak*int64(i+1) || m.Idle <= 0 || m.Idle > keptPlans*40<<10 {
				t.Errorf("%s: %+v after %d runs", name, m, i+1)
			}
		}
		e.Free()
		if m := e.Memory(); m.Idle != 0 {
			t.Errorf("%s: %+v after Free", name, m)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The lifetime of a value is from the step that computes it to the last one that reads it.
func TestLifetimes(t *testing.T) {
	e, err := Open(context.Background(), relus(), Options{Workers: 1, NoFusion: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	u, err := e.Usage(map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{3, 64}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Values) != 2 || u.Plan.Blocks[0].Bytes != 3*64*4 {
		t.Fatalf("values %+v, blocks %+v", u.Values, u.Plan.Blocks)
	}
	if a, b := u.Values[0], u.Values[1]; a.First != 0 || a.Last != 1 || b.First != 1 || b.Last != 1 ||
		a.Bytes != 3*64*4 || a.Block != 0 || b.Block != 0 {
		t.Errorf("values %+v", u.Values)
	}
}

// staleness is a profiler of the largest number of bytes that are read no more.
type staleness struct{ dynamic, stale int64 }

func (s *staleness) Step(e Event, run func() error) error {
	s.dynamic, s.stale = max(s.dynamic, e.Dynamic), max(s.stale, e.Stale)
	return run()
}

// Values whose sizes are known at run time only are released after their last use, outputs of the model when they are
// copied.
func TestDynamicValuesAreReleased(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	n := g.AddValue("n")
	n.Type = &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: 1}}}
	g.Inputs = []*ir.Value{n}
	x := g.Insert(nil, "ConstantOfShape", []*ir.Value{n})
	g.AddOutput(x)
	for range 4 {
		x = g.Insert(nil, "Neg", []*ir.Value{x})
	}
	g.AddOutput(x)
	s := &staleness{}
	e, err := Open(context.Background(), m, Options{Workers: 1, NoFusion: true, Profile: s})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Run(context.Background(), map[string]*ir.Array{"n": ir.ArrayOf([]int64{1000}, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	if s.dynamic < 4000 || s.stale != 0 {
		t.Errorf("%d bytes outside the arena, %d of them after their last use", s.dynamic, s.stale)
	}
}
