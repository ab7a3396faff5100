package kernel

import (
	"math"
	"slices"
	"testing"
)

// zeroBelow is the contract, element by element.
func zeroBelow(x []float32, limit uint32, ties int) int {
	for i, v := range x {
		switch b := math.Float32bits(v) & magnitude; {
		case b < limit:
			x[i] = 0
		case b == limit && ties > 0:
			x[i] = 0
			ties--
		}
	}
	return ties
}

func checkZeroBelow(t *testing.T, x []float32, limit uint32, ties int) {
	t.Helper()
	got, intact := guarded[float32](len(x), 7)
	copy(got, x)
	want := slices.Clone(x)
	left, wantLeft := ZeroBelow(got, limit, ties), zeroBelow(want, limit, ties)
	if left != wantLeft {
		t.Fatalf("%d ties left, want %d", left, wantLeft)
	}
	wantBits(t, got, want)
	intact(t)
}

func TestZeroBelow(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		limits := []uint32{0, 1, math.Float32bits(0.5), math.Float32bits(1), f32Inf, magnitude, magnitude + 1}
		for _, v := range x[:min(3, len(x))] {
			limits = append(limits, math.Float32bits(v)&magnitude)
		}
		for _, limit := range limits {
			for _, ties := range []int{0, 1, 5, 300, 5000} {
				checkZeroBelow(t, x, limit, ties)
			}
		}
	})
}

func FuzzZeroBelow(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) {
		checkZeroBelow(t, x, b, int(a%100))
		if len(x) > 0 {
			checkZeroBelow(t, x, math.Float32bits(x[0])&magnitude, int(a%100))
		}
	})
}
