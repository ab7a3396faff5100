package report

import (
	"math"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// result is a report with files of the given size, an error rate and a latency.
func result(bytes int64, errorRate, seconds float64) *Report {
	return &Report{
		Source: Side{Files: []File{{Name: "m.onnx", Bytes: 100, SHA256: "aa"}}},
		Result: Side{Files: []File{{Name: "m.int8.onnx", Bytes: bytes}}},
		Verification: &verification.Result{
			Data:    &verification.Data{Samples: 10, SHA256: "dd"},
			Metric:  &verification.Metric{Name: "error-rate", After: &errorRate},
			Latency: &verification.Latency{Before: 2, After: seconds},
		},
	}
}

func TestGatesRelativeToABaseline(t *testing.T) {
	champion := result(50, 0.1, 1)
	for _, c := range []struct {
		name  string
		bound float64
		r     *Report
		edit  func(*Report)
		value float64
		held  bool
		why   string
	}{
		{"max-baseline-size-ratio", 1, result(50, 0, 0), nil, 1, true, ""},
		{"max-baseline-size-ratio", 1, result(51, 0, 0), nil, 1.02, false, ""},
		{"max-baseline-metric-drop", 0.01, result(50, 0.11, 0), nil, 0.01, true, ""}, // a lower error rate is better
		{"max-baseline-metric-drop", 0.01, result(50, 0.12, 0), nil, 0.02, false, ""},
		{"max-baseline-metric-drop", 0.01, result(50, 0.1, 0), func(r *Report) {
			r.Verification.Data.Samples = 9
		}, 0, false, "other samples"},
		{"max-baseline-metric-drop", 0.01, result(50, 0.1, 0), func(r *Report) {
			r.Verification.Data.SHA256 = "ee"
		}, 0, false, "other samples"},
		{"max-baseline-metric-drop", 0.01, result(50, 0.1, 0), func(r *Report) {
			r.Verification.Metric = nil
		}, 0, false, "no metric was measured"},
		{"max-baseline-metric-drop", 0.01, result(50, 0.1, 0), func(r *Report) {
			r.Verification.Metric.Name = "top-1"
		}, 0, false, "the baseline has no top-1"},
		{"max-baseline-latency-ratio", 1, result(50, 0.1, 1), nil, 1, true, ""},
		// of a slower machine
		{"max-baseline-latency-ratio", 1, result(50, 0.1, 1.5), func(r *Report) {
			r.Verification.Latency.Before = 4
		}, 0.75, true, ""},
		{"max-baseline-latency-ratio", 1, result(50, 0.1, 1.5), func(r *Report) {
			r.Verification.Latency.Before, r.Source.Files[0].SHA256 = 4, "bb"
		}, 1.5, false, ""},
		{"max-baseline-latency-ratio", 1, result(50, 0.1, 1), func(r *Report) {
			r.Verification.Latency = nil
		}, 0, false, "latency was not measured"},
		{"max-baseline-latency-ratio", 1, result(50, 0.1, 1), func(r *Report) {
			r.Verification = nil
		}, 0, false, "the models were not run"},
	} {
		if c.edit != nil {
			c.edit(c.r)
		}
		gates, err := c.r.Evaluate([]Limit{{c.name, c.bound}}, NewBaseline("champion", champion))
		if err != nil {
			t.Fatal(err)
		}
		g := gates[0]
		if g.Held != c.held || !strings.Contains(g.Reason, c.why) || (g.Value == nil) != (c.why != "") ||
			g.Value != nil && math.Abs(*g.Value-c.value) > 1e-6 {
			t.Errorf("%s: got %+v, want %v, %v, %q", c.name, g, c.value, c.held, c.why)
		}
		if gates, err = c.r.Evaluate([]Limit{{c.name, c.bound}}, nil); err != nil || gates[0].Held {
			t.Errorf("%s without a baseline: %+v, %v", c.name, gates, err)
		}
	}
}

func TestBaselineKeepsTheSchema(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}}).input(t)
	in.Baseline = NewBaseline("champion", result(50, 0.1, 1))
	in.Baseline.Digest, in.Baseline.Source, in.Baseline.Data.SHA256 = strings.Repeat("a", 64), strings.Repeat("b", 64),
		strings.Repeat("c", 64)
	in.Gates = []Limit{{"max-baseline-size-ratio", 1}}
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, r)
	if lines := r.Inconsistencies(); len(lines) > 0 {
		t.Errorf("got %q", lines)
	}
}
