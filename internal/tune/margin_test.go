package tune

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/mcompress/mcompress/report/verification"
)

// The standard error equals that of the mean per-sample difference between the models.
func TestStandardErrorIsThatOfDifferences(t *testing.T) {
	for _, c := range []struct{ lost, won, same int }{{0, 0, 50}, {3, 1, 96}, {1, 5, 94}, {40, 2, 958}} {
		n := c.lost + c.won + c.same
		d := make([]float64, n)
		for i := range c.lost {
			d[i] = 1
		}
		for i := range c.won {
			d[c.lost+i] = -1
		}
		before := 0.9
		a := &verification.Accuracy{Before: &before, After: before - stat.Mean(d, nil), Differ: int64(c.lost + c.won)}
		want := math.Sqrt(stat.PopVariance(d, nil) / float64(n))
		if got := standardError(a, n); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

// The margin is two standard errors: of counts, or of the mean probabilities if the bound is fewer than ten samples.
func TestMarginIsTwoStandardErrors(t *testing.T) {
	before := 0.9
	a := &verification.Accuracy{Before: &before, After: 0.88, Differ: 60, Likelihood: &verification.Likelihood{Drop: 0.004, Error: 0.003}}
	byCounts := 0.02 + 2*math.Sqrt((0.06-0.0004)/1000)
	if got := drop(a, 1000, 0.01); math.Abs(got-byCounts) > 1e-12 {
		t.Errorf("bound of 10 samples: drop %v, want %v", got, byCounts)
	}
	if got := drop(a, 1000, 0.0099); math.Abs(got-0.01) > 1e-12 {
		t.Errorf("bound of less than 10 samples: drop %v, want 0.01", got)
	}
}
