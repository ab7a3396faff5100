package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzMaxWindows(f *testing.F) {
	for n := range uint8(40) {
		f.Add(uint64(n), n, n%5, n%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, rows uint8, triples bool) {
		r := rand.New(rand.NewPCG(seed, 8))
		taps, span := 2, 2*int(n)
		if triples {
			taps = 3
		}
		x := random(r, span+r.IntN(300))
		special := []float64{math.NaN(), math.Copysign(math.NaN(), -1), math.Inf(-1), math.Inf(1), 0,
			math.Copysign(0, -1)}
		for range r.IntN(len(x)/2 + 1) {
			x[r.IntN(len(x))] = float32(special[r.IntN(len(special))])
		}
		at := make([]int64, rows%12)
		for i := range at {
			at[i] = int64(r.IntN(len(x) - span + 1))
		}
		got := random(r, int(n)+1) // the last one is not written
		want := slices.Clone(got)
		first := got[0]
		MaxWindows(got[:n], x, at, taps, first)
		maxWindowsGo(want[:n], x, at, taps, first)
		wantFloats(t, got, want)
	})
}

func TestMaxWindows(t *testing.T) {
	inf, nan, zero := float32(math.Inf(-1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	x := []float32{
		1, 2, 3, 4, 5, 4, 3, nan, 1, 7, inf, inf, inf, zero, 0, zero, 6,
		0, 1, 9, inf, 1, 8, 2, 2, 2, inf, inf, inf, inf, inf, zero, inf, 6,
	}
	for _, test := range []struct {
		taps int
		want []float32
	}{
		{2, []float32{2, 9, 8, nan, 7, inf, zero, 0}},
		{3, []float32{3, 9, 8, nan, nan, 7, zero, 0}},
	} {
		got := make([]float32, len(test.want))
		MaxWindows(got, x, []int64{0, 17}, test.taps, 3)
		wantFloats(t, got, test.want)
	}
}
