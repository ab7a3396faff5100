package tune

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// The margin is two standard errors: of counts, or of the mean probabilities if the bound is fewer than ten samples.
func TestMarginIsTwoStandardErrors(t *testing.T) {
	before := 0.9
	a := &verification.Accuracy{Before: &before, After: 0.88, Error: math.Sqrt((0.06 - 0.0004) / 1000),
		Likelihood: &verification.Likelihood{Drop: 0.004, Error: 0.003}}
	byCounts := 0.02 + 2*math.Sqrt((0.06-0.0004)/1000)
	if got := drop(a, 1000, 0.01); math.Abs(got-byCounts) > 1e-12 {
		t.Errorf("bound of 10 samples: drop %v, want %v", got, byCounts)
	}
	if got := drop(a, 1000, 0.0099); math.Abs(got-0.01) > 1e-12 {
		t.Errorf("bound of less than 10 samples: drop %v, want 0.01", got)
	}
}

func TestMetricsHoldWithTwoStandardErrors(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	gates := []report.Limit{{Name: metricGate, Bound: 0.1}}
	for _, c := range []struct {
		m    *verification.Metric
		want bool
	}{
		{&verification.Metric{Before: number(3), After: number(3.05), Error: number(0.02)}, true},
		{&verification.Metric{Before: number(3), After: number(3.05), Error: number(0.03)}, false},
		{&verification.Metric{Before: number(0.9), After: number(0.85), HigherIsBetter: true, Error: number(0.03)}, false},
		{&verification.Metric{Before: number(0.9), After: number(0.95), HigherIsBetter: true, Error: number(0.03)}, true},
		{&verification.Metric{Before: number(0.9), After: number(0.85), HigherIsBetter: true}, true},
	} {
		if got := metricHolds(c.m, gates); got != c.want {
			t.Errorf("%s: got %v", c.m.Text(), got)
		}
	}
}
