package distill

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// parse returns the settings of finetune with these options.
func parse(t *testing.T, o ...string) *settings {
	t.Helper()
	var s *settings
	m := &pass.Method{New: func() pass.Options { return &parsed{to: &s} }}
	step, err := pass.NewStep(m, set(o))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pass.Run(t.Context(), network(1, 1, 1), nil, pass.Environment{}, []pass.Options{step}); err != nil {
		t.Fatal(err)
	}
	return s
}

// parsed is finetune, but Run only stores the settings.
type parsed struct {
	FineTune
	to **settings
}

func (p parsed) Run(context.Context, *pass.Step) error {
	*p.to = newFineTuning(p.FineTune)
	return nil
}

// ready returns a prepared trainer.
func ready(t *testing.T, m *ir.Model, o ...string) *trainer {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	tr := newTrainer(m, e, serial, parse(t, o...)) // as planned
	t.Cleanup(func() { tr.close(); e.Close() })
	if err := tr.prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestPlannedArena compares the planned arena with the measured memory of steps.
func TestPlannedArena(t *testing.T) {
	data := samples(t, 300)
	for _, o := range [][]string{
		nil, {"checkpoint", "sqrt"}, {"checkpoint", "light"}, {"storage", "float16"}, {"offload", "activations"},
		{"accumulate", "2"}, {"optimizer", "adam8"},
	} {
		tr := ready(t, network(1, features, 256, 256, 256, 64, classes),
			append([]string{"data", data, "labels", "label", "batch", "128"}, o...)...)
		for b, err := range tr.loader.batches(t.Context(), tr.loader.training[:tr.layout.microBatch()],
			tr.layout.microBatch(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			targets, err := tr.teachers.targets(t.Context(), tr.step.targets, b, tr.loader.training[:b.N])
			if err != nil {
				t.Fatal(err)
			}
			args := tr.step.arguments(b, targets, hyperparameters{rate: 1e-3, step: 1, update: 1, lossScale: 1})
			m, err := tr.step.session.Measure(t.Context(), args)
			if err != nil {
				t.Fatal(err)
			}
			if taken := (m.Arena + memory.Align - 1) / memory.Align * memory.Align; taken != tr.step.arena() || m.Heap > 1<<10 {
				t.Errorf("%v: planned arena %d bytes, measured %d, and %d outside the arena", o, tr.step.arena(), m.Arena, m.Heap)
			}
		}
	}
}

// TestLayoutsSaveMemory compares the memory of layouts with that of the default layout.
func TestLayoutsSaveMemory(t *testing.T) {
	data := samples(t, 300)
	deep := func() *ir.Model {
		return network(1, features, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, classes)
	}
	base := []string{"data", data, "labels", "label", "batch", "256"}
	plain := ready(t, deep(), base...).memory
	for _, c := range []struct {
		ratio float64 // maximum
		o     []string
		field func(memoryUsage) int64
	}{
		{0.65, []string{"checkpoint", "sqrt"}, func(m memoryUsage) int64 { return m.Arena }},
		{0.65, []string{"checkpoint", "auto"}, func(m memoryUsage) int64 { return m.Arena }},
		{0.66, []string{"storage", "float16"}, func(m memoryUsage) int64 { return m.Arena }},
		{0.5, []string{"offload", "activations"}, func(m memoryUsage) int64 { return m.Arena }},
		{0.55, []string{"checkpoint", "auto", "storage", "float16"}, func(m memoryUsage) int64 { return m.Arena }},
		{0.3, []string{"optimizer", "adam8"}, func(m memoryUsage) int64 { return m.States }},
		{0.2, []string{"offload", "optimizer"}, func(m memoryUsage) int64 { return m.States }},
		{0.3, []string{"accumulate", "8"}, func(m memoryUsage) int64 { return m.Arena }},
	} {
		got := ready(t, deep(), append(base, c.o...)...).memory
		if left := float64(c.field(got)) / float64(c.field(plain)); left > c.ratio {
			t.Errorf("%v: %.2f of %d bytes, want at most %.2f", c.o, left, c.field(plain), c.ratio)
		}
	}
}

// TestMemoryBudget plans within the smallest budget that the error of a smaller one names, and trains with its layout;
// the weights are equal to those of the default layout up to rounding errors.
func TestMemoryBudget(t *testing.T) {
	data := samples(t, 300)
	net := func() *ir.Model { return network(1, features, 64, 64, 64, 64, 64, 64, 64, classes) }
	base := []string{"data", data, "labels", "label", "batch", "128", "epochs", "2"}
	tr := ready(t, net(), base...)
	within := func(budget int64, onOOM string) (*candidate, *BudgetError) {
		t.Helper()
		tr.settings.MemoryBudget, tr.settings.OnOOM = Size(budget), onOOM
		c, err := tr.planner().choose(t.Context())
		var small *BudgetError
		if err != nil && !errors.As(err, &small) {
			t.Fatal(err)
		}
		return c, small
	}
	_, refused := within(1, "fail")
	if refused == nil || !slices.Contains(refused.Hints, "--on-oom halve") {
		t.Fatalf("got %v", refused)
	}
	c, _ := within(refused.Smallest, "fail")
	if c == nil || c.memory.Total() > refused.Smallest || len(c.memory.Why) < 2 {
		t.Fatalf("budget %d: got %+v", refused.Smallest, c)
	}
	if _, err := within(refused.Smallest-1<<20, "fail"); err == nil {
		t.Error("a smaller budget than the smallest suffices")
	}
	_, halved := within(1, "halve")
	if halved == nil || halved.Smallest > refused.Smallest || slices.Contains(halved.Hints, "--on-oom halve") {
		t.Errorf("got %v, and %v without halving", halved, refused)
	}
	a, b := net(), net()
	if _, err := tune(t, a, 2, base...); err != nil {
		t.Fatal(err)
	}
	if _, err := tune(t, b, 2, append(base, "checkpoint", "auto", "offload", "all", "accumulate", "4")...); err != nil {
		t.Fatal(err)
	}
	if d := maxDifference(weights(t, a), weights(t, b)); d > 1e-3 {
		t.Errorf("weights differ by %g", d)
	}
}

// TestStepsDoNotLeakMemory compares the heap after 10 and after 70 steps.
func TestStepsDoNotLeakMemory(t *testing.T) {
	tr := ready(t, network(1, features, 64, 64, classes), "data", samples(t, 300), "labels", "label", "epochs", "8",
		"validate", "0")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var early, late int64
	tr.progress.notify = func(p pass.Progress) {
		switch p.Step {
		case 10:
			early = heap()
		case 70:
			late = heap()
		}
	}
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if early == 0 || late == 0 || late-early > 64<<10 {
		t.Errorf("heap of %d bytes after 10 steps, %d after 70", early, late)
	}
}
