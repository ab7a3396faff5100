package tune

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// sums are bytes and sensitivity of a choice, added over layers.
func sums(layers []*layer, c choice) (bytes int64, sensitivity float64) {
	for i, l := range layers {
		v := l.variantOf(c[i])
		bytes += v.bytes
		sensitivity += v.sensitivity
	}
	return bytes, sensitivity
}

// every calls f with each choice for layers.
func every(layers []*layer, c choice, f func(choice)) {
	if len(c) == len(layers) {
		f(c)
		return
	}
	for _, v := range append(slices.Clone(layers[len(c)].variants), variant{candidate: none}) {
		every(layers, append(slices.Clone(c), v.candidate), f)
	}
}

// No choice dominates a point of the front, each non-dominated choice is on it, and it ends with sensitivity zero.
func TestParetoFrontIsNonDominated(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var layers []*layer
		for range 1 + r.IntN(4) {
			l := &layer{bytes: 100 + r.Int64N(50)}
			for c := range r.IntN(4) {
				l.variants = append(l.variants, variant{candidate: c, bytes: r.Int64N(100), sensitivity: float64(1 + r.IntN(8))})
			}
			layers = append(layers, l)
		}
		got := map[int64]float64{}
		last := 0.0
		for _, c := range paretoFront(layers) {
			bytes, sensitivity := sums(layers, c)
			got[bytes], last = sensitivity, sensitivity
		}
		least := map[int64]float64{} // by bytes
		every(layers, nil, func(c choice) {
			bytes, sensitivity := sums(layers, c)
			if d, ok := least[bytes]; !ok || sensitivity < d {
				least[bytes] = sensitivity
			}
		})
		for bytes, sensitivity := range least {
			beaten := false
			for b, d := range least {
				beaten = beaten || b < bytes && d <= sensitivity
			}
			if d, ok := got[bytes]; ok == beaten || ok && d != sensitivity {
				t.Errorf("seed %d: %d bytes, sensitivity %v: dominated %v, on the front %v with %v", seed, bytes, sensitivity,
					beaten, ok, d)
			}
		}
		if last != 0 {
			t.Errorf("seed %d: the front ends with sensitivity %v", seed, last)
		}
	}
}

// Thinning keeps both ends of a front.
func TestLongParetoFrontIsThinned(t *testing.T) {
	var points []*point
	for i := range 10 * maxPoints {
		points = append(points, &point{bytes: int64(i)})
	}
	kept := thinned(points)
	if len(kept) != maxPoints || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] {
		t.Errorf("%d points from %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
}

// Small layers are measured together; their bytes add up.
func TestMergedSmallLayersAddUp(t *testing.T) {
	layers := []*layer{
		{names: []string{"large"}, bytes: 1e6,
			variants: []variant{{candidate: 0, bytes: 5e5, sensitivity: 0}, {candidate: 1, bytes: 2e5, sensitivity: 0}}},
		{names: []string{"a"}, bytes: 10, variants: []variant{{candidate: 0, bytes: 5, sensitivity: 0}},
			companions: map[int][]string{0: {"bias"}}},
		{names: []string{"b"}, bytes: 20, variants: []variant{{candidate: 0, bytes: 9, sensitivity: 0}}},
		{names: []string{"c"}, bytes: 20, variants: []variant{{candidate: 1, bytes: 9, sensitivity: 0}}},
	}
	got := mergeSmall(layers)
	if len(got) != 3 || !slices.Equal(got[1].weights(0), []string{"a", "b", "bias"}) || got[1].bytes != 30 ||
		got[1].variants[0].bytes != 14 {
		t.Errorf("%d layers, %+v", len(got), got[1])
	}
}

// A choice equal to a failed one is not tried again.
func TestFailedChoicesAreNotRepeated(t *testing.T) {
	layers := []*layer{
		{variants: []variant{{candidate: 0, bytes: 10, sensitivity: 1}, {candidate: 1, bytes: 10, sensitivity: 1},
			{candidate: 2, bytes: 5, sensitivity: 1}}},
		{variants: []variant{{candidate: 0, bytes: 10, sensitivity: 1}, {candidate: 1, bytes: 10, sensitivity: 2}}},
	}
	tu := &tuner{failed: []choice{{0, none}}}
	for _, c := range []struct {
		choice choice
		want   bool
	}{{choice{0, none}, true}, {choice{1, none}, true}, {choice{2, none}, false}, {choice{none, none}, false},
		{choice{0, 1}, false}} {
		if got := tu.repeats(layers, c.choice); got != c.want {
			t.Errorf("%v: %v, want %v", c.choice, got, c.want)
		}
	}
}
