package profile

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// attached is a session of x[elems] → the operators, which a recorder measures, and its planned peak.
func attached(t *testing.T, r *Recorder, elems int64, phase func(string) string, ops ...string) (run func(),
	peak int64) {
	t.Helper()
	spec := ir.Spec{DType: ir.Float, Shape: []int64{elems}}
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 22}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: spec.DType, Shape: []ir.Dim{{N: elems}}}
	m.Graph.Inputs = []*ir.Value{x}
	for _, op := range ops {
		x = m.Graph.Insert(nil, op, []*ir.Value{x})
		x.Producer().Name = "node " + op
	}
	m.Graph.AddOutput(x)
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	u, err := e.Usage(map[string]ir.Spec{"x": spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(e, u, phase); err != nil {
		t.Fatal(err)
	}
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, elems)}
	return func() {
		t.Helper()
		if _, err := e.Run(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
	}, line.Peak
}

// A profile has the nodes of all sessions as means per step, the peak of the largest session, and memory besides the
// arena.
func TestProfileOfSessions(t *testing.T) {
	r := New()
	small, _ := attached(t, r, 100, func(string) string { return "forward" }, "Sin", "Softsign")
	large, peak := attached(t, r, 10000, nil, "Sin", "Exp", "Softsign")
	r.Hold(memory.Weight, 100)
	r.Hold(memory.Weight, 23)
	r.Hold(memory.State, 7)
	if r.Profile() != nil {
		t.Error("a profile without steps")
	}
	r.Begin()
	small() // a warm-up
	r.End()
	r.Reset()
	const steps = 12
	for range steps {
		r.Begin()
		small()
		large()
		small()
		r.End()
	}
	p := r.Profile()
	calls, seconds, fraction := map[string]float64{}, 0.0, 0.0
	for _, row := range p.Operators {
		calls[row.Phase+" "+row.Name] += row.Calls
		seconds, fraction = seconds+row.Seconds, fraction+row.Fraction
	}
	want := map[string]float64{"forward Sin": 2, "forward Softsign": 2, " Sin": 1, " Exp": 1, " Softsign": 1}
	if p.Steps != steps || !maps.Equal(calls, want) {
		t.Errorf("%d steps with %v, want %d with %v", p.Steps, calls, steps, want)
	}
	if math.Abs(seconds+p.Outside-p.Seconds) > 1e-9 || math.Abs(fraction*p.Seconds-seconds) > 1e-9 {
		t.Errorf("operators take %v s, %v of %v s", seconds, fraction, p.Seconds)
	}
	if !slices.IsSortedFunc(p.Nodes, func(a, b Row) int { return -int(math.Copysign(1, a.Seconds-b.Seconds)) }) ||
		len(p.Nodes) != len(want) || p.Nodes[0].Name != "node "+p.Nodes[0].Op {
		t.Errorf("nodes %+v", p.Nodes)
	}
	if p.Peak == nil || p.Peak.Bytes != peak || p.Peak.Bytes < 4*10000 {
		t.Errorf("peak %+v, want the %d bytes of the larger session", p.Peak, peak)
	}
	if held := map[string]int64{"weight": 123, "state": 7}; !maps.Equal(p.Held, held) {
		t.Errorf("held %v, want %v", p.Held, held)
	}
	for _, g := range p.Growth {
		if g.Name == "arenas kept for later runs" && g.Last < peak {
			t.Errorf("%d bytes are kept for later runs, whose peak is %d", g.Last, peak)
		}
	}
}

// Live has the most memory since the last call, and that of the running node while one runs.
func TestLive(t *testing.T) {
	r := New()
	run, peak := attached(t, r, 1000, nil, "Sin", "Exp", "Softsign")
	r.Samples(func() int64 { return 77 })
	r.Hold(memory.Gradient, 5)
	r.Begin()
	run()
	during := r.Live()
	r.End()
	if sum(during.Most) != peak || sum(during.Arena) == 0 || during.Step != 0 {
		t.Errorf("in a step: %+v, want %d bytes at most", during, peak)
	}
	if after := r.Live(); len(after.Arena) > 0 || after.Step != 1 || after.Held["gradient"] != 5 ||
		after.Samples != 77 || after.Heap <= 0 {
		t.Errorf("after a step: %+v", after)
	}
	if later := r.Live(); len(later.Most) > 0 {
		t.Errorf("%v are in use since the last call, but no node ran", later.Most)
	}
}

func sum(bytes map[string]int64) (total int64) {
	for _, n := range bytes {
		total += n
	}
	return total
}
