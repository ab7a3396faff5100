package distill

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// prunedInSteps returns the weights of a network that a method with these options pruned, and its history.
func prunedInSteps(t *testing.T, m *pass.Method, workers int, o ...string) (map[string][]byte, *pass.Result) {
	t.Helper()
	step, err := pass.NewStep(m, set(o))
	if err != nil {
		t.Fatal(err)
	}
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	model := network(1, features, 32, 16, classes)
	res, err := pass.Run(t.Context(), model, e, pass.Environment{Workers: workers}, []pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	return weights(t, model), res
}

// zeros returns the fraction of zeros of the matrices.
func zeros(ws map[string][]byte) float64 {
	n, all := 0, 0
	for name, b := range ws {
		if strings.HasPrefix(name, "w") {
			for _, x := range ir.View[float32](array(b)) {
				if all++; x == 0 {
					n++
				}
			}
		}
	}
	return float64(n) / float64(all)
}

func TestPruningSchedules(t *testing.T) {
	for name, want := range map[string][]float64{"cubic": {0.578125, 0.875, 0.984375, 1}, "linear": {0.25, 0.5, 0.75, 1},
		"constant": {1, 1, 1, 1}} {
		g := Gradual{Schedule: name, Steps: 4}
		for i, w := range want {
			if got := g.fractionAt(i + 1); got != w {
				t.Errorf("%s: %v of the amount after step %d, want %v", name, got, i+1, w)
			}
		}
	}
}

// Each method has pruned the scheduled amounts after each step, with one row of the ledger for each weight and one
// history.
func TestIterativePruning(t *testing.T) {
	data := samples(t, 120)
	for pruning, want := range map[string][]float64{
		"l1 amount=0.8": {0.4, 0.8}, "l1-global amount=0.9": {0.45, 0.9}, "random amount=0.6": {0.3, 0.6},
		"nm pattern=1:4": {0.5, 0.75},
		"l2 amount=0.5":  {0.25, 0.5}, "channel amount=0.5": {0.375, 0.65625},
	} {
		ws, res := prunedInSteps(t, iterativePruning, 2, "prune", pruning, "schedule", "linear", "steps", "2",
			"training-steps", "4", "data", data, "labels", "label")
		h := res.Trainings[0]
		if len(res.Trainings) != 1 || len(h.Pruning) != 2 || h.Steps != 8 || h.Pruning[1].Step != 4 {
			t.Fatalf("%s: %d histories, %d steps, pruning %+v", pruning, len(res.Trainings), h.Steps, h.Pruning)
		}
		for i, p := range h.Pruning {
			if math.Abs(p.Amount-want[i]) > 0.04 || p.Loss == nil || p.Accuracy == nil || p.LR == 0 {
				t.Errorf("%s: step %d: %+v, want the amount %v", pruning, i+1, p, want[i])
			}
		}
		if got := zeros(ws); !strings.HasPrefix(pruning, "channel") && math.Abs(got-want[1]) > 0.04 {
			t.Errorf("%s: %v of the weights are zero", pruning, got)
		}
		rows := map[string]int{}
		for _, r := range res.Rows {
			rows[r.Tensor]++
			if pruned := slices.ContainsFunc(r.Notes, func(n pass.Reason) bool {
				return n.Code == pass.Pruned
			}); rows[r.Tensor] > 1 || pruned != strings.HasPrefix(r.Tensor, "w") && !strings.HasPrefix(pruning, "channel") {
				t.Errorf("%s: rows of %s: %d, notes %v", pruning, r.Tensor, rows[r.Tensor], r.Notes)
			}
		}
	}
}

// The amount counts weights that are pruned but not trained, of types that training does not have.
func TestAmountOfOtherTypes(t *testing.T) {
	for dt, size := range map[ir.DType]int{ir.Float: 4, ir.Float16: 2, ir.BFloat16: 2, ir.Double: 8} {
		m, e := network(1, features, 32, 16, classes), ir.NewEval(t.TempDir())
		defer e.Close()
		raw := make([]byte, 100*size)
		for i := range 75 {
			raw[i*size], raw[(i+1)*size-1] = 1, 0x40 // about 2; the other elements are 0
		}
		v := m.Graph.AddConst("other", &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: []int64{10, 10}}, Source: ir.Mem(raw)})
		it := newIterations(&pass.Step{Model: m, Eval: e, Method: "iterative"}, FineTune{})
		it.elements[v] = 100
		if got, err := it.amount(t.Context()); err != nil || got != 0.25 {
			t.Errorf("%v: amount %v, want 0.25; %v", dt, got, err)
		}
	}
}

// Channels that are pruned in steps are as many as in one step.
func TestIterativeChannelsAddUp(t *testing.T) {
	data := samples(t, 80)
	for _, amount := range []string{"0.3", "0.7"} {
		o := []string{"prune", "channel amount=" + amount, "training-steps", "1", "data", data, "labels", "label"}
		one, _ := prunedInSteps(t, iterativePruning, 1, append(o, "schedule", "constant", "steps", "1")...)
		some, _ := prunedInSteps(t, iterativePruning, 1, append(o, "steps", "5")...)
		for name, b := range one {
			if len(some[name]) != len(b) {
				t.Errorf("amount %s: %s has %d bytes after 5 steps, %d after one", amount, name, len(some[name]), len(b))
			}
		}
	}
}

// Iterative pruning is deterministic for any number of workers, and resumes bit-identically with a checkpoint for each
// training.
func TestIterativePruningIsDeterministic(t *testing.T) {
	data := samples(t, 120)
	for _, m := range []*pass.Method{iterativePruning, movementPruning} {
		o := []string{"schedule", "linear", "steps", "2", "epochs", "2", "batch", "8", "lr", "0.01", "data", data,
			"labels", "label"}
		want, h := prunedInSteps(t, m, 1, o...)
		got, _ := prunedInSteps(t, m, 3, o...)
		equal(t, got, want, m.Name+", 3 workers")
		saved := append(slices.Clone(o), "save", filepath.Join(t.TempDir(), "checkpoint"), "resume", "true")
		prunedInSteps(t, m, 1, saved...)
		again, r := prunedInSteps(t, m, 1, saved...)
		equal(t, again, want, m.Name+", resumed")
		if a, b := r.Trainings[0], h.Trainings[0]; len(a.Loss) != len(b.Loss) || a.Steps != b.Steps ||
			a.Pruning[1].Amount != b.Pruning[1].Amount {
			t.Errorf("%s: history %+v, want %+v", m.Name, a, b)
		}
	}
}

// Rewound weights are those after an epoch of the first training, or zero; later trainings repeat the rest of the first
// one.
func TestRewind(t *testing.T) {
	data := samples(t, 120)
	base := []string{"batch", "12", "lr", "0.01", "patience", "0", "validate", "0", "data", data, "labels", "label"}
	early, _ := trained(t, 1, append(slices.Clone(base), "epochs", "1", "reinit", "3", "schedule", "constant",
		"warmup", "0")...)
	m, e := network(1, features, 32, 16, classes), ir.NewEval(t.TempDir())
	defer e.Close()
	o := parse(t, append(base, "epochs", "2", "reinit", "3", "schedule", "constant", "warmup", "0")...).FineTune
	all := newIterations(&pass.Step{Model: m, Eval: e, Method: "iterative"}, o)
	all.repeats = true
	all.rewind = &rewinding{epoch: 1}
	if err := all.train(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := all.prune(t.Context(), prune.L1Global{Amount: 0.5}); err != nil {
		t.Fatal(err)
	}
	rewound := weights(t, m)
	if got := zeros(rewound); math.Abs(got-0.5) > 0.01 {
		t.Errorf("%v of the weights are zero", got)
	}
	for name, b := range early {
		w := ir.View[float32](array(b))
		for i, x := range ir.View[float32](array(rewound[name])) {
			if x != 0 && x != w[i] {
				t.Fatalf("%s: element %d is %v, %v after the first epoch", name, i, x, w[i])
			}
		}
	}
	if err := all.train(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if p := all.history.Pruning; p[1].LR != p[0].LR || all.history.Steps != p[1].Step*3/2 {
		t.Errorf("history of %d steps: %+v", all.history.Steps, p)
	}
}

// A training with rewound weights begins within the schedule, with optimizer states of its own: the first update of Adam
// is as large as the learning rate, and the first average as near to the weights as that of any training.
func TestRewoundTrainingStartsItsOptimizer(t *testing.T) {
	const rate, epoch = 0.01, 8 // steps
	for _, optimizer := range []string{"adam", "adamw", "adam8"} {
		s := parse(t, "batch", "12", "lr", fmt.Sprint(rate), "schedule", "constant", "warmup", "0", "steps",
			fmt.Sprint(5*epoch+1), "optimizer", optimizer, "weight-decay", "0", "ema", "0.999", "data", samples(t, 24*epoch),
			"labels", "label", "validate", "0.5")
		s.rewind = &rewinding{epoch: 5, early: map[string][]byte{}}
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		m := network(1, features, 32, 16, classes)
		tr := newTrainer(m, e, 1, s)
		defer tr.close()
		if err := tr.prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		before, moved, averaged := weights(t, m), 0.0, 0.0
		tr.progress.notify = func(p pass.Progress) {
			if p.Step != 5*epoch+1 || moved > 0 {
				return
			}
			for i, p := range tr.params.weights {
				for k, w := range ir.View[float32](array(before[p.name])) {
					moved = max(moved, math.Abs(float64(ir.View[float32](p.array)[k]-w)))
					averaged = max(averaged, math.Abs(float64(ir.View[float32](tr.validation.average.arrays[i])[k]-w)))
				}
			}
		}
		if err := tr.train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if math.Abs(moved-rate) > rate/50 {
			t.Errorf("%s: the first update moves weights by %g, want %g", optimizer, moved, rate)
		}
		if want := rate * 9 / 11; math.Abs(averaged-want) > rate/50 {
			t.Errorf("%s: the first average moves by %g, want %g", optimizer, averaged, want)
		}
	}
}

func TestIterativePruningOptions(t *testing.T) {
	for _, c := range []struct {
		o    []string
		want string
	}{
		{[]string{"prune", "layers"}, "layers prunes in one step only; in several steps prune l1, l1-global, l2, random, " +
			"nm, channel"},
		{[]string{"prune", "l3"}, `unknown method "l3"`},
		{[]string{"prune", "l1 pattern=2:4"}, `no option "pattern"`},
		{[]string{"steps", "0"}, `"0" is not supported`},
		{[]string{"steps", "-1"}, "steps -1: must be between 1 and 1000"},
		{[]string{"training-steps", "-1"}, "training-steps -1: must be a positive number"},
		{[]string{"rewind-epoch", "1"}, "rewind-epoch requires rewind weights and reinit"},
		{[]string{"prune", "channel", "rewind", "weights"}, "channel removes channels"},
		{[]string{"time", "5m"}, "no such flag"},
	} {
		if _, err := pass.NewStep(iterativePruning, set(c.o)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.o, err, c.want)
		}
	}
}
