package verification

import (
	"math"
	"strings"
	"testing"
)

func num(x float64) *float64 { return &x }

func valueOf(t *testing.T, r *Result, name string) (float64, string) {
	t.Helper()
	for _, rule := range Rules() {
		if rule.Name == name {
			return rule.Value(r)
		}
	}
	t.Fatalf("there is no rule %q", name)
	return 0, ""
}

func TestGatesOnTheWorstOutput(t *testing.T) {
	measured := Output{Name: "a", Errors: &Errors{SQNR: num(20), Cosine: num(0.9), Elements: 4}, Agreement: num(0.5)}
	equal := Output{Name: "b", Errors: &Errors{Exact: true, Elements: 4}, Agreement: num(1)}
	broken := Output{Name: "c", Errors: &Errors{NonFinite: 2, Elements: 4}}
	classes := Output{Name: "d", Agreement: num(0.25)}
	empty := Output{Name: "e", Errors: &Errors{Exact: true}}
	inf := math.Inf(1)
	for _, c := range []struct {
		outputs                 []Output
		sqnr, cosine, agreement float64
		why                     string // of the SQNR
	}{
		{[]Output{measured, equal, empty}, 20, 0.9, 0.5, ""},
		{[]Output{equal, classes}, inf, 1, 0.25, "the outputs are equal"},
		{[]Output{measured, broken}, -inf, -inf, 0.5, `output "c": 2 of 4 elements`},
		{[]Output{classes}, math.NaN(), math.NaN(), 0.25, "no float output"},
		{[]Output{empty}, math.NaN(), math.NaN(), math.NaN(), "no float output"},
	} {
		r := &Result{Outputs: c.outputs}
		for name, want := range map[string]float64{"min-sqnr": c.sqnr, "min-cosine": c.cosine, "min-agreement": c.agreement} {
			got, why := valueOf(t, r, name)
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s of %+v: got %v, want %v", name, c.outputs, got, want)
			}
			if (why == "") != (!math.IsInf(got, 0) && !math.IsNaN(got)) {
				t.Errorf("%s: %v has the reason %q", name, got, why)
			}
			if name == "min-sqnr" && !strings.Contains(why, c.why) {
				t.Errorf("reason %q, want %q", why, c.why)
			}
		}
	}
}

func TestGatesOfSkippedModelsHaveAReason(t *testing.T) {
	r := &Result{Skipped: "of the weather"}
	for _, rule := range Rules() {
		if v, why := rule.Value(r); !math.IsNaN(v) || why != "the models were not run: of the weather" {
			t.Errorf("%s: got %v, %q", rule.Name, v, why)
		}
	}
}

func TestAccuracyDropIsRounded(t *testing.T) {
	r := &Result{Accuracy: &Accuracy{Before: num(0.9894), After: 0.989}}
	if v, why := valueOf(t, r, "max-accuracy-drop"); v != 0.0004 || why != "" {
		t.Errorf("got %v, %q", v, why)
	}
	if v, why := valueOf(t, &Result{}, "max-accuracy-drop"); !math.IsNaN(v) || why == "" {
		t.Errorf("without labels: got %v, %q", v, why)
	}
}

// No model can be worse than one that is always wrong, so a gate on its drop would always hold.
func TestNothingCorrectIsNoReference(t *testing.T) {
	for _, r := range []*Result{
		{Accuracy: &Accuracy{Before: num(0), After: 0}}, {Accuracy: &Accuracy{Before: num(0), After: 0.5}},
		{Unmeasured: "label 3"},
	} {
		if v, why := valueOf(t, r, "max-accuracy-drop"); !math.IsNaN(v) || !strings.Contains(why, "label") {
			t.Errorf("%+v: got %v, %q", r.Accuracy, v, why)
		}
	}
	if v, why := valueOf(t, &Result{Metric: &Metric{Name: "f1", Before: num(0), After: num(0), HigherIsBetter: true}},
		"max-metric-drop"); !math.IsNaN(v) || !strings.Contains(why, "f1 is 0") {
		t.Errorf("got %v, %q", v, why)
	}
}

func TestMetricDropOfUndefinedMetricsHasAReason(t *testing.T) {
	if v, why := valueOf(t, &Result{Metric: &Metric{Name: "cer", Before: num(0.1), After: num(0.125)}},
		"max-metric-drop"); v != 0.025 || why != "" {
		t.Errorf("got %v, %q", v, why)
	}
	for _, r := range []*Result{{}, {Metric: &Metric{Name: "f1", After: num(1), Single: true}},
		{Metric: &Metric{Name: "spearman", Before: num(1)}}} {
		if v, why := valueOf(t, r, "max-metric-drop"); !math.IsNaN(v) || why == "" {
			t.Errorf("%+v: got %v, %q", r.Metric, v, why)
		}
	}
}

func TestLatencyRatio(t *testing.T) {
	if v, why := valueOf(t, &Result{Latency: &Latency{Before: 0.5, After: 0.75, Runs: 9}},
		"max-latency-ratio"); v != 1.5 || why != "" {
		t.Errorf("got %v, %q", v, why)
	}
	if v, why := valueOf(t, &Result{}, "max-latency-ratio"); !math.IsNaN(v) || why == "" {
		t.Errorf("without times: got %v, %q", v, why)
	}
}
