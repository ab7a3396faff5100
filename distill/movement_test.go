package distill

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// The scores are the sums of w·∂L/∂w: with SGD the gradient of a step is the change of the weight divided by the
// learning rate.
func TestMovementScores(t *testing.T) {
	const rate = 0.05
	data := samples(t, 64)
	m, e := network(1, features, 16, classes), ir.NewEval(t.TempDir())
	defer e.Close()
	o := parse(t, "data", data, "labels", "label", "batch", "64", "steps", "1", "optimizer", "sgd", "warmup", "0",
		"validate", "0", "lr", "0.05").FineTune
	before := weights(t, m)
	all := newIterations(&pass.Step{Model: m, Eval: e, Method: "movement"}, o)
	ws := trainedWeights(m, m.Graph.Consts())
	all.movement = newImportance(ws)
	if err := all.train(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	after := weights(t, m)
	for _, v := range ws {
		w, now := ir.View[float32](array(before[v.Name])), ir.View[float32](array(after[v.Name]))
		for i, got := range ir.View[float32](all.movement[v.Name].scores) {
			if want := w[i] * (w[i] - now[i]) / rate; math.Abs(float64(got-want)) > 1e-4 {
				t.Fatalf("%s: score %v of element %d, want %v", v.Name, got, i, want)
			}
		}
	}
}

func TestMovementMasks(t *testing.T) {
	for _, c := range []struct {
		values, scores []float32
		n              int
		want           []float32
	}{
		{[]float32{1, 1, 1, 1}, []float32{0.5, -1, 2, 0}, 2, []float32{0, 1, 0, 1}},
		{[]float32{1, 0, 1, 1}, []float32{0.5, -1, 2, 0}, 1, []float32{1, 0, 1, 1}}, // zeros first
		{[]float32{1, 1, 1, 1}, []float32{1, 1, 1, 1}, 3, []float32{0, 0, 0, 1}},    // ties in order
		{[]float32{1, 1}, []float32{1, 2}, 2, []float32{0, 0}},
		{[]float32{1, 1}, []float32{1, 2}, 0, []float32{1, 1}},
	} {
		w := &maskedWeight{scores: ir.ArrayOf(c.scores, int64(len(c.scores))),
			mask: ir.NewArray(ir.Float, int64(len(c.scores)))}
		w.prune(c.values, c.n)
		if got := ir.View[float32](w.mask); !slices.Equal(got, c.want) {
			t.Errorf("scores %v, %d pruned: mask %v, want %v", c.scores, c.n, got, c.want)
		}
	}
}

// Movement pruning learns while it prunes; a weight under the mask keeps its value and is zero at the end only.
func TestMovementPruning(t *testing.T) {
	ws, res := prunedInSteps(t, movementPruning, 2, "amount", "0.6", "steps", "4", "epochs", "3", "lr", "0.01", "data",
		samples(t, 600), "labels", "label")
	h := res.Trainings[0]
	if got := zeros(ws); math.Abs(got-0.6) > 0.01 || len(h.Pruning) != 5 || h.Pruning[0].Amount != 0 ||
		math.Abs(h.Pruning[4].Amount-0.6) > 0.01 {
		t.Errorf("%v of the weights are zero; %+v", got, h.Pruning)
	}
	if a := h.Pruning[4].Accuracy; a == nil || *a < 0.9 {
		t.Errorf("accuracy %v after pruning", a)
	}
	if _, err := pass.NewStep(movementPruning, set([]string{"storage", "float16"})); err == nil {
		t.Error("--storage float16 is no error")
	}
}
