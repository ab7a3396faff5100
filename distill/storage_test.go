package distill

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// planOfOptions returns the plan of a model with these options.
func planOfOptions(t *testing.T, m *ir.Model, o ...string) *Plan {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	p, err := NewPlan(t.Context(), &pass.Step{Model: m, Eval: e}, parse(t, append(o, "validate", "0")...).FineTune,
		PlanOptions{Sizes: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// No type of stored activations needs more memory than float32, with and without checkpointing.
func TestStorageNeedsNoMoreMemory(t *testing.T) {
	for _, units := range [][]int64{{784, 512, 10}, {64, 2048, 10}, {784, 300, 100, 10},
		{64, 64, 64, 64, 64, 64, 64, 10}} {
		for _, batch := range []string{"8", "512", "2048"} {
			for _, checkpoint := range []string{"none", "auto"} {
				o := []string{"batch", batch, "checkpoint", checkpoint}
				plain := planOfOptions(t, network(1, units...), o...)
				for _, storage := range []string{"float16", "int8"} {
					if got := planOfOptions(t, network(1, units...), append(o, "storage", storage)...); got.Arena > plain.Arena {
						t.Errorf("%v, batch %s, checkpoint %s: arena of %d bytes in %s, %d in float32", units, batch, checkpoint,
							got.Arena, storage, plain.Arena)
					}
				}
			}
		}
	}
}

// Each activation that is stored in another type reduces the arena: one fewer increases it.
func TestChooseStorage(t *testing.T) {
	for _, o := range [][]string{{"storage", "float16"}, {"storage", "int8"}} {
		tr := ready(t, network(1, features, 64, 64, 64, 256, 64, 64, 64, 64, 64, 64, classes),
			append([]string{"data", samples(t, 300), "labels", "label", "batch", "256", "validate", "0"}, o...)...)
		p, pl := tr.layout, tr.planner()
		if len(p.stored.names) == 0 || p.stored.after >= p.stored.before {
			t.Errorf("%v: %d activations, %d instead of %d bytes", o, len(p.stored.names), p.stored.after, p.stored.before)
		}
		bounded := 0
		for _, name := range p.stored.names {
			q := *p
			q.exact = map[string]bool{name: true}
			for other := range p.exact {
				q.exact[other] = true
			}
			st, err := pl.planStep(context.Background(), &q)
			if err != nil || st.arena() <= tr.step.arena() {
				t.Errorf("%v: %s in float32 needs no more memory; %v", o, name, err)
			}
			if floor := tr.step.floor([]string{name}); floor > st.arena() {
				t.Errorf("%v: %s in float32: arena of %d bytes, its lower bound is %d", o, name, st.arena(), floor)
			} else if floor > tr.step.arena() {
				bounded++
			}
		}
		if bounded == 0 {
			t.Errorf("%v: no lower bound avoids a plan", o)
		}
	}
}

// Training with int8 activations has about the loss of float32, with the same first loss, and does not depend on the
// number of workers.
func TestInt8Storage(t *testing.T) {
	base := []string{"data", samples(t, 600), "labels", "label", "batch", "128", "epochs", "4", "validate", "0",
		"optimizer", "momentum"}
	learn := func(workers int, o ...string) (map[string][]byte, pass.Training) {
		m := network(1, features, 64, 64, 64, 64, 64, 64, classes)
		res, err := tune(t, m, workers, append(base, o...)...)
		if err != nil {
			t.Fatal(err)
		}
		return weights(t, m), res.Trainings[0]
	}
	whole, want := learn(2)
	quantized, got := learn(2, "storage", "int8")
	if fmt.Sprint(whole) == fmt.Sprint(quantized) {
		t.Error("int8 storage changed no weight")
	}
	if got.Loss[0].Y != want.Loss[0].Y {
		t.Errorf("the first loss is %v, %v in float32", got.Loss[0].Y, want.Loss[0].Y)
	}
	last := len(want.Loss) - 1
	if a, b := want.Loss[last].Y, got.Loss[last].Y; !(math.Abs(a-b) < 0.05*want.Loss[0].Y) {
		t.Errorf("the last loss is %v, %v in float32", b, a)
	}
	if offloaded, _ := learn(2, "storage", "int8", "offload", "activations"); fmt.Sprint(whole) == fmt.Sprint(offloaded) {
		t.Error("offloaded activations are not int8")
	}
	other, _ := learn(3, "storage", "int8")
	equal(t, other, quantized, "3 workers")
	dropped, _ := learn(1, "storage", "int8", "seed", "1")
	equal(t, dropped, quantized, "1 worker")
}
