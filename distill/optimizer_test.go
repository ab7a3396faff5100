package distill

import (
	"math"
	"testing"
)

// Warm-up rises linearly to the learning rate, which its last step reaches. The schedule then begins at its start: the
// first step after warm-up has the full rate.
func TestLearningRates(t *testing.T) {
	for _, c := range []struct {
		schedule string
		warmup   float64
		want     []float64 // of 10 steps, as fractions of the learning rate
	}{
		{"constant", 0, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"constant", 0.4, []float64{0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1}},
		{"linear", 0, []float64{1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}},
		{"linear", 0.5, []float64{0.2, 0.4, 0.6, 0.8, 1, 1, 0.8, 0.6, 0.4, 0.2}},
		{"step", 0, []float64{1, 1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01}},
		{"step", 0.1, []float64{1, 1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01}},
		{"cosine", 0.29, []float64{0.5, 1, 1, cosine(1, 8), cosine(2, 8), cosine(3, 8), 0.5, cosine(5, 8), cosine(6, 8),
			cosine(7, 8)}},
	} {
		s := &settings{FineTune: FineTune{LR: 0.02, Schedule: c.schedule, Warmup: &c.warmup}}
		for step, want := range c.want {
			if got := s.rateAt(step, len(c.want)); math.Abs(got-0.02*want) > 1e-12 {
				t.Errorf("%s, warm-up %v: step %d has rate %v, want %v", c.schedule, c.warmup, step, got, 0.02*want)
			}
		}
	}
}

// cosine is half a period of the cosine, from 1 to 0.
func cosine(step, steps float64) float64 { return (1 + math.Cos(math.Pi*step/steps)) / 2 }
