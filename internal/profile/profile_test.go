package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
)

// usage is a plan of three nodes: a's block is also that of c, which is computed in place, and b's block lives two
// nodes too long.
func usage() *engine.Usage {
	return &engine.Usage{
		Plan: &memory.Plan{Size: 448, Blocks: []memory.Block{
			{Name: "a", Kind: memory.Activation, Bytes: 100, First: 0, Last: 3},
			{Name: "b", Kind: memory.Activation, Bytes: 200, First: 0, Last: 3},
			{Name: "n1", Kind: memory.Scratch, Bytes: 50, First: 1, Last: 1},
		}},
		Steps: []engine.Step{{Node: "n0", Op: "Split"}, {Node: "n1", Op: "Add"}, {Node: "n2", Op: "Relu"},
			{Node: "n3", Op: "Sum"}},
		Values: []engine.Lifetime{
			{Name: "a", Bytes: 100, Block: 0, First: 0, Last: 2},
			{Name: "b", Bytes: 200, Block: 1, First: 0, Last: 1},
			{Name: "c", Bytes: 100, Block: 0, First: 2, Last: 3},
		},
	}
}

func TestPeakByValueAndKind(t *testing.T) {
	p, err := newPlan(usage(), []string{"forward", "forward", string(grad.Backward), string(grad.Backward)})
	if err != nil {
		t.Fatal(err)
	}
	peak := p.peak()
	if peak.Node != "n1" || peak.Bytes != 350 || peak.Arena != 448 || peak.ByKind["activation"] != 300 ||
		peak.ByKind["scratch"] != 50 {
		t.Errorf("got %+v", peak)
	}
	want := []Value{{"b", "n0", "Split", "activation", 200}, {"a", "n0", "Split", "activation", 100},
		{"", "n1", "Add", "scratch", 50}}
	if !slices.Equal(peak.Values, want) {
		t.Errorf("values %+v", peak.Values)
	}
	if last := p.line.Live[3]; last[memory.Gradient] != 100 || last[memory.Activation] != 200 {
		t.Errorf("the result of the backward pass in place of an activation is no gradient: %v", last)
	}
}

func TestWaste(t *testing.T) {
	p, err := newPlan(usage(), make([]string, 4))
	if err != nil {
		t.Fatal(err)
	}
	w := p.waste()
	if w.Allocated != 4*100+4*200+50 || w.Unused != 2*200 || w.Gaps != 448-350 {
		t.Errorf("got %+v", w)
	}
	if want := []Late{{"b", 200, 2}}; !slices.Equal(w.Late, want) {
		t.Errorf("late %+v", w.Late)
	}
}

// The area in use is that of the plan without what no value needs, and all of nothing.
func TestAreaInUse(t *testing.T) {
	for want, w := range map[float64]Waste{1: {}, 0.75: {Allocated: 4, Unused: 1}, 0: {Allocated: 1, Unused: 1}} {
		if got := w.InUse(); got != want {
			t.Errorf("%+v: %v, want %v", w, got, want)
		}
	}
}

// The growth per step is that of the samples after the start-up, over the steps between them, however many there are.
func TestGrowthPerStep(t *testing.T) {
	for _, samples := range []int{1, 2, 5, 40, maxSamples, 3 * maxSamples} {
		g := &Samples{}
		for step := 1; step <= samples; step++ {
			if g.Due(step) {
				g.Add(Quantity{"bytes", int64(7 * step)})
			}
			if len(g.rows) >= maxSamples {
				t.Fatalf("%d samples", len(g.rows))
			}
		}
		if got := g.Growth()[0]; samples > 1 && got.PerStep != 7 || samples == 1 && got.PerStep != 0 ||
			got.Last < int64(7*(samples-g.distance)) {
			t.Errorf("%d samples of 7 bytes a step: %+v", samples, got)
		}
	}
}

// A quantity that stays the same now and then grows; one that decreases, or seldom changes, does not.
func TestGrowingQuantities(t *testing.T) {
	for name, c := range map[string]struct {
		of    func(step int) int
		grows bool
	}{
		"every step":        {func(step int) int { return step }, true},
		"but every fifth":   {func(step int) int { return step - step/5 }, true},
		"two of three":      {func(step int) int { return step - step/3 }, false},
		"every other step":  {func(step int) int { return step / 2 }, false},
		"with one decrease": {func(step int) int { return step - 3*(step/30) }, false},
		"constant":          {func(int) int { return 5 }, false},
	} {
		g := &Samples{}
		for step := 1; step < 40; step++ {
			g.Add(Quantity{"bytes", int64(c.of(step))})
		}
		if got := g.Growth()[0]; got.Grows != c.grows || !got.Checked {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Memory that is released late is listed by its bytes times nodes.
func TestLateMemoryIsInOrder(t *testing.T) {
	u := usage()
	u.Plan.Blocks, u.Values, u.Steps = nil, nil, make([]engine.Step, 40)
	for _, v := range []struct {
		name  string
		bytes int64
		nodes int
	}{{"small and long", 30, 20}, {"large and short", 100, 3}, {"long", 50, 30}, {"in time", 1000, 1}} {
		u.Plan.Blocks = append(u.Plan.Blocks, memory.Block{Name: v.name, Kind: memory.Activation, Bytes: v.bytes,
			Last: 5 + v.nodes})
		u.Values = append(u.Values, engine.Lifetime{Name: v.name, Bytes: v.bytes, Block: len(u.Values), Last: 5})
	}
	p, err := newPlan(u, make([]string, len(u.Steps)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Late{{"long", 50, 30}, {"small and long", 30, 20}, {"large and short", 100, 3}}
	if got := p.waste().Late; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// retained is a leak.
var retained [][]byte

func TestGrowth(t *testing.T) {
	defer func() { retained = nil }()
	for name, leak := range map[string]bool{"leak": true, "none": false} {
		r := New()
		for range 300 {
			r.Begin()
			if leak {
				retained = append(retained, make([]byte, 64<<10))
			}
			r.End()
		}
		if n := len(r.growth.rows); n >= maxSamples {
			t.Errorf("%d samples", n)
		}
		for _, g := range r.Profile().Growth {
			if g.Grows != (leak && g.Name == "Go heap") {
				t.Errorf("%s: %+v", name, g)
			}
			if g.Grows && math.Abs(g.PerStep-64<<10) > 4<<10 {
				t.Errorf("%v bytes a step, want 64 KiB", g.PerStep)
			}
		}
	}
}

// Few steps are not checked, and the profile reports that.
func TestGrowthOfFewSteps(t *testing.T) {
	for steps := range 12 {
		r := New()
		for range steps {
			r.Begin()
			r.End()
		}
		for _, g := range r.growth.Growth() {
			if g.Checked != (steps >= LeastSteps) || g.Grows && !g.Checked {
				t.Errorf("%d steps: %+v", steps, g)
			}
		}
		if got := len(r.growth.Growth()); (got > 0) != (steps > 0) {
			t.Errorf("%d steps: %d quantities", steps, got)
		}
	}
}

// Times of nodes are without those of nodes in subgraphs, and all times add up to that of the steps. A trace has the
// first steps only.
func TestTimesAddUp(t *testing.T) {
	r := New()
	plan, err := newPlan(usage(), []string{"forward", "forward", "backward", "update"})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Recorder: r, phase: func(string) string { return "" }, plan: plan,
		phases: []string{"forward", "forward", "backward", "update"}}
	r.sessions = append(r.sessions, s)
	const steps = 50
	for range steps {
		r.Begin()
		r.Spent(Waiting, time.Nanosecond)
		for i, st := range usage().Steps {
			err := s.Step(engine.Event{Node: st.Node, Op: st.Op, Index: i, Alloc: 16, Freed: 8, Stale: 3},
				func() error {
					inner := func() error {
						return s.Step(engine.Event{Node: "inner", Op: "Mul", Index: -1},
							func() error { time.Sleep(10 * time.Microsecond); return nil })
					}
					return errors.Join(inner(), inner())
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		r.End()
	}
	p := r.Profile()
	var phases, ops float64
	for _, row := range p.Phases {
		phases += row.Seconds
	}
	for _, row := range p.Operators {
		ops += row.Seconds
		if row.Seconds < 0 {
			t.Errorf("%+v of %v s", row, p.Seconds)
		}
	}
	if p.Outside < 0 { // time of nodes in subgraphs is counted twice
		t.Errorf("nodes took %v s of %v s", ops, p.Seconds)
	}
	if math.Abs(phases-p.Seconds) > 1e-9 || math.Abs(ops+p.Outside-p.Seconds) > 1e-9 {
		t.Errorf("phases %v, operators %v + %v, want %v", phases, ops, p.Outside, p.Seconds)
	}
	if !slices.ContainsFunc(p.Phases, func(row Row) bool {
		return row.Phase == Waiting && row.Calls == 1 &&
			row.Seconds > 0
	}) {
		t.Errorf("no time of waiting in %+v", p.Phases)
	}
	for _, row := range p.Nodes {
		if outer := row.Name != "inner"; outer && (row.Calls != 1 || row.Alloc != 16 || row.Freed != 8) {
			t.Errorf("a node is called once a step and allocates 16 bytes: %+v", row)
		}
	}
	if p.Waste.Stale != 4*3 {
		t.Errorf("%d bytes are stale in a step of four nodes, want 3 each", p.Waste.Stale)
	}
	var b bytes.Buffer
	if err := r.Trace(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range trace.TraceEvents {
		count[e.Phase+" "+e.Cat]++
		if e.Phase == "C" && (e.Args["activation"] == nil || e.Args["gradient"] == nil) {
			t.Errorf("counter %+v", e)
		}
	}
	if count["X step"] != tracedSteps || count["X forward"] != 2*tracedSteps || count["X backward"] != tracedSteps ||
		count["X "+Waiting] != tracedSteps || count["C "] == 0 {
		t.Errorf("events %v", count)
	}
}
