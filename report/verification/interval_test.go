package verification

import (
	"math"
	"testing"
)

// Examples of Newcombe's paper.
func TestPairedInterval(t *testing.T) {
	for _, tt := range []struct{ both, lost, gained, neither, low, high float64 }{
		{36, 12, 2, 0, 0.0569, 0.3404},
		{54, 0, 0, 0, -0.0664, 0.0664},
	} {
		low, high := pairedInterval(tt.both+tt.lost+tt.gained+tt.neither, tt.both+tt.lost, tt.lost, tt.gained)
		if math.Abs(low-tt.low) > 1e-4 || math.Abs(high-tt.high) > 1e-4 {
			t.Errorf("%+v: got %.4f to %.4f", tt, low, high)
		}
	}
}

// The interval has the drop of the population in about 95 of 100 samples, near 0 % and 100 % too.
func TestCoverageOfPairedIntervals(t *testing.T) {
	const n = 40
	factorial := func(k int) float64 { l, _ := math.Lgamma(float64(k + 1)); return l }
	for _, p := range [][4]float64{{0.9, 0.05, 0.02, 0.03}, {0.6, 0.1, 0.1, 0.2}, {0.97, 0.01, 0.01, 0.01},
		{0.3, 0.3, 0.05, 0.35}} {
		covered := 0.0
		for both := range n + 1 {
			for lost := range n + 1 - both {
				for gained := range n + 1 - both - lost {
					neither := n - both - lost - gained
					log := factorial(n) - factorial(both) - factorial(lost) - factorial(gained) - factorial(neither)
					for i, k := range []int{both, lost, gained, neither} {
						log += float64(k) * math.Log(p[i])
					}
					d := NewDrop(n, int64(both+lost), int64(lost), int64(gained))
					if drop := p[1] - p[2]; d.Low <= drop && drop <= d.High {
						covered += math.Exp(log)
					}
				}
			}
		}
		if covered < 0.94 {
			t.Errorf("%v: %.3f", p, covered)
		}
	}
}
