package tune

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// sums are what a choice takes and does if both add up.
func sums(layers []*layer, c choice) (bytes int64, damage float64) {
	for i, l := range layers {
		v := l.as(c[i])
		bytes += v.bytes
		damage += v.damage
	}
	return bytes, damage
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

// No choice beats one of the front in both, each that none beats is there, and it ends with what does no damage.
func TestFrontIsWhatNoChoiceBeats(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var layers []*layer
		for range 1 + r.IntN(4) {
			l := &layer{bytes: 100 + r.Int64N(50)}
			for c := range r.IntN(4) {
				l.variants = append(l.variants, variant{c, r.Int64N(100), float64(1 + r.IntN(8))})
			}
			layers = append(layers, l)
		}
		got := map[int64]float64{}
		last := 0.0
		for _, c := range front(layers) {
			bytes, damage := sums(layers, c)
			got[bytes], last = damage, damage
		}
		least := map[int64]float64{} // by bytes
		every(layers, nil, func(c choice) {
			bytes, damage := sums(layers, c)
			if d, ok := least[bytes]; !ok || damage < d {
				least[bytes] = damage
			}
		})
		for bytes, damage := range least {
			beaten := false
			for b, d := range least {
				beaten = beaten || b < bytes && d <= damage
			}
			if d, ok := got[bytes]; ok == beaten || ok && d != damage {
				t.Errorf("seed %d: %d bytes of damage %v: beaten %v, on the front %v with %v", seed, bytes, damage, beaten, ok, d)
			}
		}
		if last != 0 {
			t.Errorf("seed %d: the front ends with damage %v", seed, last)
		}
	}
}

// A front that is too long keeps its ends.
func TestFrontIsThinned(t *testing.T) {
	var points []*point
	for i := range 10 * mostPoints {
		points = append(points, &point{bytes: int64(i)})
	}
	kept := thinned(points)
	if len(kept) != mostPoints || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] {
		t.Errorf("%d points from %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
}

// What is negligible is measured together, and adds up.
func TestLumpAddsUp(t *testing.T) {
	layers := []*layer{
		{names: []string{"large"}, bytes: 1e6, variants: []variant{{0, 5e5, 0}, {1, 2e5, 0}}},
		{names: []string{"a"}, bytes: 10, variants: []variant{{0, 5, 0}}, riders: map[int][]string{0: {"bias"}}},
		{names: []string{"b"}, bytes: 20, variants: []variant{{0, 9, 0}}},
		{names: []string{"c"}, bytes: 20, variants: []variant{{1, 9, 0}}},
	}
	got := lump(layers)
	if len(got) != 3 || !slices.Equal(got[1].taken(0), []string{"a", "b", "bias"}) || got[1].bytes != 30 || got[1].variants[0].bytes != 14 {
		t.Errorf("%d layers, %+v", len(got), got[1])
	}
}

// A choice that failed is not tried again under another name.
func TestRepeats(t *testing.T) {
	layers := []*layer{
		{variants: []variant{{0, 10, 1}, {1, 10, 1}, {2, 5, 1}}},
		{variants: []variant{{0, 10, 1}, {1, 10, 2}}},
	}
	tu := &tuner{failed: []choice{{0, none}}}
	for _, c := range []struct {
		choice choice
		want   bool
	}{{choice{0, none}, true}, {choice{1, none}, true}, {choice{2, none}, false}, {choice{none, none}, false}, {choice{0, 1}, false}} {
		if got := tu.repeats(layers, c.choice); got != c.want {
			t.Errorf("%v: %v, want %v", c.choice, got, c.want)
		}
	}
}
