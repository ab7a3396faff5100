package verify

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The deviation is that of the ratio over many draws of the same number of runs.
func TestDeviationOfNoiseToSignal(t *testing.T) {
	const runs, draws = 50, 4000
	rng := rand.New(rand.NewPCG(1, 2))
	var ratios, deviations []float64
	for range draws {
		var s spread
		for range runs {
			signal := 1 + rng.Float64()
			s.add(signal*0.01*rng.ExpFloat64(), signal)
		}
		ratios, deviations = append(ratios, s.noise/s.signal), append(deviations, s.deviation())
	}
	mean, square, deviation := 0.0, 0.0, 0.0
	for i, r := range ratios {
		mean += r / draws
		square += r * r / draws
		deviation += deviations[i] / draws
	}
	want := math.Sqrt(square-mean*mean) / mean
	if math.Abs(deviation-want) > 0.05*want {
		t.Errorf("mean deviation %v, want %v", deviation, want)
	}
	// By hand: of the ratio 2/3, noise differs by -1/3 and 1/3; the deviation of their mean is 1/3, the mean signal 3.
	var two spread
	two.add(1, 2)
	if two.add(3, 4); math.Abs(two.deviation()-1.0/3/3/(2.0/3)) > 1e-12 {
		t.Errorf("of two runs: %v", two.deviation())
	}
	var one spread
	if one.add(1, 2); one.deviation() != 0 {
		t.Errorf("of one run: %v", one.deviation())
	}
}
