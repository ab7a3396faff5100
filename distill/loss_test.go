package distill

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// TestAlpha: a step of gradient descent with labels and teacher is the mean of the steps with each, weighted by alpha.
func TestAlpha(t *testing.T) {
	data := samples(t, 300)
	step := func(alpha string) []float32 {
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		o := parse(t, "data", data, "labels", "label", "validate", "0", "steps", "1", "optimizer", "sgd", "momentum", "0",
			"alpha", alpha)
		tr := newTrainer(network(1, features, 32, classes), e, 2, o)
		defer tr.close()
		if err := tr.prepare(t.Context(), []*ir.Model{network(2, features, 16, classes)}); err != nil {
			t.Fatal(err)
		}
		if err := tr.train(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ir.View[float32](tr.params.weights[0].array)
	}
	labels, teacher, both := step("1"), step("0"), step("0.25")
	changed := 0.0
	for i, w := range both {
		want := 0.25*labels[i] + 0.75*teacher[i]
		if d := math.Abs(float64(w - want)); d > 1e-6 {
			t.Fatalf("weight %d is %g, want %g", i, w, want)
		}
		changed = max(changed, math.Abs(float64(labels[i]-teacher[i])))
	}
	if changed < 1e-4 {
		t.Error("labels and teacher have the same gradient")
	}
}
