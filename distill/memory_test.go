package distill

import (
	"flag"
	"runtime"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// parse are the settings that these options make.
func parse(t *testing.T, o ...string) *settings {
	t.Helper()
	s := &settings{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	s.bind(fs, tuning)
	for i := 0; i < len(o); i += 2 {
		if err := fs.Set(o[i], o[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// ready is a trainer that was prepared.
func ready(t *testing.T, m *ir.Model, o ...string) *Trainer {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	tr := &Trainer{settings: *parse(t, o...), model: m, eval: e, workers: 2}
	t.Cleanup(func() { tr.close(); e.Close() })
	if err := tr.prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestPlanIsWhatAStepTakes compares the planned arena with the memory that steps were seen to take.
func TestPlanIsWhatAStepTakes(t *testing.T) {
	data := samples(t, 300)
	for _, o := range [][]string{
		nil, {"checkpoint", "sqrt"}, {"checkpoint", "light"}, {"storage", "float16"}, {"offload", "activations"}, {"accumulate", "2"}, {"optimizer", "adam8"},
	} {
		tr := ready(t, network(1, features, 256, 256, 256, 64, classes), append([]string{"data", data, "labels", "label", "batch", "128"}, o...)...)
		for b, err := range tr.set.Batches(t.Context(), dataset.Order{Size: tr.layout.part(), Index: tr.split.learn[:tr.layout.part()]}) {
			if err != nil {
				t.Fatal(err)
			}
			targets, err := tr.targets(t.Context(), tr.step, b, b.Inputs, tr.split.learn[:b.N])
			if err != nil {
				t.Fatal(err)
			}
			args := tr.step.arguments(b.Inputs, targets, numbers{rate: 1e-3, step: 1, scale: 1, parts: 1})
			m, err := tr.step.session.Measure(t.Context(), args)
			if err != nil {
				t.Fatal(err)
			}
			if taken := (m.Arena + memory.Align - 1) / memory.Align * memory.Align; taken != tr.step.arena || m.Heap > 1<<10 {
				t.Errorf("%v: planned %d bytes, %d taken, and %d outside of it", o, tr.step.arena, m.Arena, m.Heap)
			}
		}
	}
}

// TestLayoutsSaveMemory: what is there to save memory does.
func TestLayoutsSaveMemory(t *testing.T) {
	data := samples(t, 300)
	deep := func() *ir.Model {
		return network(1, features, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, classes)
	}
	base := []string{"data", data, "labels", "label", "batch", "256"}
	plain := ready(t, deep(), base...).state.Course.Memory
	for _, c := range []struct {
		part  float64 // of the plain arena that is left at most
		o     []string
		field func(Memory) int64
	}{
		{0.65, []string{"checkpoint", "sqrt"}, func(m Memory) int64 { return m.Arena }},
		{0.65, []string{"checkpoint", "auto"}, func(m Memory) int64 { return m.Arena }},
		{0.65, []string{"storage", "float16"}, func(m Memory) int64 { return m.Arena }},
		{0.5, []string{"offload", "activations"}, func(m Memory) int64 { return m.Arena }},
		{0.55, []string{"checkpoint", "auto", "storage", "float16"}, func(m Memory) int64 { return m.Arena }},
		{0.3, []string{"optimizer", "adam8"}, func(m Memory) int64 { return m.States }},
		{0.2, []string{"offload", "optimizer"}, func(m Memory) int64 { return m.States }},
		{0.3, []string{"accumulate", "8"}, func(m Memory) int64 { return m.Arena }},
	} {
		got := ready(t, deep(), append(base, c.o...)...).state.Course.Memory
		if left := float64(c.field(got)) / float64(c.field(plain)); left > c.part {
			t.Errorf("%v: %.2f of %d bytes are left, want %.2f", c.o, left, c.field(plain), c.part)
		}
	}
}

// TestBudgetIsKept: a budget of half of what training takes by itself is kept, and the weights are the same up to rounding.
func TestBudgetIsKept(t *testing.T) {
	data := samples(t, 300)
	net := func() *ir.Model { return network(1, features, 64, 64, 64, 64, 64, 64, 64, classes) }
	base := []string{"data", data, "labels", "label", "batch", "128", "epochs", "2"}
	need := ready(t, net(), base...).state.Course.Memory.Total()
	budget := size(need / 2)
	tr := ready(t, net(), append(base, "memory-budget", budget.String())...)
	if got := tr.state.Course.Memory; got.Total() > int64(tr.budget) || len(got.Why) < 2 {
		t.Errorf("a budget of %d: %d are planned; %v", tr.budget, got.Total(), got.Why)
	}
	a, b := net(), net()
	if _, err := tune(t, a, 2, base...); err != nil {
		t.Fatal(err)
	}
	if _, err := tune(t, b, 2, append(base, "memory-budget", budget.String())...); err != nil {
		t.Fatal(err)
	}
	if d := apart(weights(t, a), weights(t, b)); d > 1e-3 {
		t.Errorf("weights differ by %g", d)
	}
}

// TestStepsLeaveNothingBehind compares what is alive after some steps and after many more.
func TestStepsLeaveNothingBehind(t *testing.T) {
	tr := ready(t, network(1, features, 64, 64, classes), "data", samples(t, 300), "labels", "label", "epochs", "8", "validate", "0")
	alive := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var early, late int64
	tr.tell = func(done, _ int, _ float64) {
		switch done {
		case 10:
			early = alive()
		case 70:
			late = alive()
		}
	}
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if early == 0 || late == 0 || late-early > 64<<10 {
		t.Errorf("%d bytes were alive after 10 steps, %d after 70", early, late)
	}
}
