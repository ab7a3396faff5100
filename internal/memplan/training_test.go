package memplan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
)

// trainerOf returns the training of a fixture with changed options.
func trainerOf(t *testing.T, fixture string, change func(*distill.FineTune)) *Trainer {
	t.Helper()
	step, err := pass.NewStep(distill.FineTune{}.Method(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Trainer{Path: filepath.Join("..", "..", "fixtures", fixture+".onnx"), Train: *step.(*distill.FineTune)}
	return tr.With(change)
}

// Each combination has the memory of its own plan, the largest batch fits and the next one does not, and the cheapest
// of those that fit has the least work.
func TestChoices(t *testing.T) {
	tr := trainerOf(t, "cnn", func(o *distill.FineTune) { o.Batch, o.Checkpoint, o.Accumulate = 64, "every=2", 4 })
	plan := func(change func(*distill.FineTune)) *distill.Plan {
		p, err := tr.With(change).Plan(t.Context(), distill.PlanOptions{Sizes: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	none := plan(func(o *distill.FineTune) { o.Checkpoint, o.Accumulate = "none", 1 })
	half := plan(func(o *distill.FineTune) { o.Checkpoint = "none" })
	budget := half.Bytes
	choices, err := tr.Choices(t.Context(), budget)
	if err != nil {
		t.Fatal(err)
	}
	if len(choices) != 4 || choices[0].Name != "" || choices[0].Total != none.Bytes || choices[0].Time != 1 ||
		choices[0].Fits {
		t.Errorf("%d choices, the first one %+v, want %d bytes", len(choices), choices[0], none.Bytes)
	}
	if c := choices[2]; c.Name != "--accumulate 4" || c.Total != half.Bytes || !c.Fits || !c.Cheapest || c.Time != 1 {
		t.Errorf("%+v, want %d bytes", c, half.Bytes)
	}
	if c := choices[3]; c.Cheapest || c.Time <= 1 || c.Name != "--checkpoint every=2 --accumulate 4" {
		t.Errorf("%+v", c)
	}
	at := func(n int) int64 {
		return plan(func(o *distill.FineTune) { o.Batch, o.Checkpoint, o.Accumulate = n, "none", 1 }).Bytes
	}
	if n := choices[0].Largest; n < 1 || n >= 64 || at(n) > budget || at(n+1) <= budget || choices[0].AtMost != at(n) {
		t.Errorf("largest batch %d of %d bytes, the next one %d, budget %d", n, at(n), at(n+1), budget)
	}
}

// The compared combinations are none, each and both of the savings, and the page draws them.
func TestCompared(t *testing.T) {
	choices, err := trainerOf(t, "cnn", func(o *distill.FineTune) { o.Batch = 64 }).Compared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(choices) != 4 || choices[3].Name != "both" ||
		!strings.HasPrefix(choices[3].Plan.Layout, "activation checkpointing (auto); ") ||
		!strings.Contains(choices[3].Plan.Layout, " activations stored in float16 ") {
		t.Fatalf("%d choices, the last one %+v", len(choices), choices[len(choices)-1])
	}
	if c := choices[1]; c.Arena >= choices[0].Arena || c.Time <= 1 {
		t.Errorf("%s: arena of %d bytes, baseline %d; predicted time %g", c.Name, c.Arena, choices[0].Arena, c.Time)
	}
	if curve := TrainingCurve(choices[0]); len(curve.Live) != len(choices[0].Plan.Steps) ||
		curve.Held+choices[0].Arena != choices[0].Total {
		t.Errorf("%d steps, %d bytes held", len(curve.Live), curve.Held)
	}
}
