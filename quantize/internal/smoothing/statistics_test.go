package smoothing

import (
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Of many runs only some extents are kept, and the noise estimate equals that of all extents.
func TestExtentsOfManyRuns(t *testing.T) {
	const n, runs = 8, 1000
	r, all := rand.New(rand.NewPCG(3, 4)), 0.
	s, f := &statistics{}, []float64{1, 2, 1, 1, .5, 1, 1, 3}
	for range runs {
		x := make([]float32, 4*n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		one := &statistics{}
		for _, to := range []*statistics{s, one} {
			if err := to.add(ir.ArrayOf(x, 4, n), n); err != nil {
				t.Fatal(err)
			}
		}
		all += one.noise(f)
	}
	if len(s.runs) > mostRuns || len(s.runs) < mostRuns/2 {
		t.Errorf("%d of %d extents are kept", len(s.runs), runs)
	}
	if got := s.noise(f); got < 0.95*all || got > 1.05*all {
		t.Errorf("noise %g, of all runs %g", got, all)
	}
	if s.rows != 4*runs {
		t.Errorf("%d rows", s.rows)
	}
}
