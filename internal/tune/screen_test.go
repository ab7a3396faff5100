package tune

import (
	"encoding/json"
	"testing"

	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// A search whose trials end early, one by one or on many workers, chooses the same methods as one in which all trials
// are complete.
func TestTrialsThatEndEarlyChangeNoChoice(t *testing.T) {
	want, complete := searched(t, 2, true)
	got, screenTrial := searched(t, 2, false)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	ended := 0
	for i, trial := range screenTrial.Trials {
		if full := complete.Trials[i]; trial.Accepted != full.Accepted || trial.Bytes != full.Bytes ||
			trial.Ended > 0 && trial.Accepted {
			t.Errorf("trial %d: %+v, complete: %+v", i, trial, full)
		}
		if trial.Ended > 0 {
			ended++
		}
	}
	if ended == 0 {
		t.Error("no trial ended early")
	}
	_, trySingleCandidates := searched(t, 1, false)
	if a, b := asJSON(t, trySingleCandidates), asJSON(t, screenTrial); a != b {
		t.Errorf("1 worker: %s, 2 workers: %s", a, b)
	}
}

// searched is the recipe and the trials of a search for an accuracy drop of at most half a point.
func searched(t *testing.T, workers int, complete bool) (string, *pass.Search) {
	t.Helper()
	o := options(t, workers)
	o.Candidates = []Candidate{candidate(quantize.WeightInt8{}.Method()), candidate(quantize.WeightInt2{}.Method())}
	o.Gates = []report.Limit{{Name: accuracyGate, Bound: 0.005}}
	tu, err := open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if complete {
		tu.screen = nil
	}
	steps, err := tu.choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := (&pass.Recipe{Steps: steps}).Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tu.close(); err != nil {
		t.Fatal(err)
	}
	return string(recipe), &tu.search
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A trial ends when the gate is missed whatever the other samples give: also with samples that the source classifies
// wrongly.
func TestGateOnAccuracyIsMissedForCertain(t *testing.T) {
	source := make([]metric.Count, 100)
	for i := range source {
		source[i] = metric.Count{Labels: 1, Before: 1}
	}
	source[0].Before, source[1].Before = 0, 0 // 98 of 100
	s := &screen{bound: 0.01}
	s.learn(source)
	for wrong, want := range []bool{false, false, false, false, true} {
		if got := s.misses(float64(wrong)); got != want {
			t.Errorf("%d wrong labels: %v, want %v", wrong, got, want)
		}
	}
}
