package smoothing

import (
	"math/rand/v2"
	"slices"
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
			to.add(ir.ArrayOf(x, 4, n), n)
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

// The extents that are kept are those of every 2nd, 4th, ... run, from the first: a sample that is spread evenly over
// all runs.
func TestKeptExtentsAreEvenlySpread(t *testing.T) {
	for _, c := range []struct{ runs, stride int }{{128, 1}, {129, 2}, {256, 2}, {257, 4}, {1000, 8}} {
		s := &statistics{}
		for i := range c.runs {
			s.keep(extent{rows: float64(i)})
		}
		var got, want []float64
		for _, r := range s.runs {
			got = append(got, r.rows)
		}
		for i := 0; i < c.runs; i += c.stride {
			want = append(want, float64(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d runs: kept %v, want every %d", c.runs, got, c.stride)
		}
		if sum := float64(c.runs*(c.runs-1)) / 2; s.weight != sum {
			t.Errorf("%d runs: weight %v, want %v", c.runs, s.weight, sum)
		}
	}
}

// Rows of zeros have no weight, and the noise is finite if all extents that are kept are those of zeros.
func TestNoiseOfZeros(t *testing.T) {
	s := &statistics{}
	for i := range 4 * mostRuns {
		s.add(ir.ArrayOf([]float32{0, float32(i % 2)}, 1, 2), 2)
	}
	if got := s.noise([]float64{1, 1}); got != 0 {
		t.Errorf("noise %g, want 0", got)
	}
}
