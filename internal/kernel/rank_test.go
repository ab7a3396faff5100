package kernel

import (
	"math"
	"slices"
	"testing"
)

func checkFilterRange(t *testing.T, x []float32, lo, hi uint32) {
	t.Helper()
	before := []uint32{1, 2, 3}
	below, got := FilterRange(before, x, lo, hi)
	wantBelow, want := filterRangeGo(slices.Clone(before), x, lo, hi)
	if below != wantBelow {
		t.Fatalf("%d elements: %d below, want %d", len(x), below, wantBelow)
	}
	wantSame(t, got, want)
}

func TestFilterRange(t *testing.T) {
	one := math.Float32bits(1)
	limits := [][2]uint32{
		{0, math.MaxUint32}, {0, 0}, {one / 2, one}, {one, one}, {one, one + 1<<23}, {one, one - 1},
		{f32Inf, magnitude}, {magnitude, magnitude}, {magnitude + 1, math.MaxUint32}, {0, magnitude + 1},
	}
	eachSample(t, func(t *testing.T, x []float32) {
		for _, l := range limits {
			checkFilterRange(t, x, l[0], l[1])
		}
	})
}

// TestFilterRangeFindsRank uses it like its callers: the k-th magnitude is within the range and the count below gives
// its position.
func TestFilterRangeFindsRank(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		sorted := make([]uint32, len(x))
		for i, v := range x {
			sorted[i] = math.Float32bits(v) & magnitude
		}
		slices.Sort(sorted)
		for k := 0; k < len(x); k += 1 + len(x)/5 {
			below, in := FilterRange(nil, x, sorted[k/2], sorted[k])
			slices.Sort(in)
			if in[k-below] != sorted[k] {
				t.Fatalf("rank %d of %d: got %#08x, want %#08x", k, len(x), in[k-below], sorted[k])
			}
		}
	})
}

func TestFilterRangeKeepsSpareCapacity(t *testing.T) {
	all := make([]uint32, 200)
	_, out := FilterRange(all[:0], make([]float32, 100), 0, 0)
	all[100] = 7
	if len(out) != 100 || &out[0] != &all[0] {
		t.Errorf("appended %d elements to another array", len(out))
	}
	FilterRange(all[:0], make([]float32, 100), 1, 2)
	if all[100] != 7 {
		t.Error("wrote beyond the appended elements")
	}
}

func FuzzFilterRange(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) { checkFilterRange(t, x, a, b) })
}
