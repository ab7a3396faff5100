package kernel

import (
	"math"
	"testing"
)

// checkMasks compares Between and ScaleMasked with their definitions.
func checkMasks(t *testing.T, x []float32, lo, hi, on, off float32) {
	t.Helper()
	want := make([]byte, (len(x)+7)/8)
	betweenGo(want, x, lo, hi)
	for i, v := range x {
		inside := v != v || (lo != lo || v > lo) && (hi != hi || v < hi)
		if got := want[i/8]>>(i%8)&1 == 1; got != inside {
			t.Fatalf("%v is between %v and %v: %v", v, lo, hi, got)
		}
	}
	mask, intact := guarded[byte](len(want), 0xa5)
	Between(mask, x, lo, hi)
	wantSame(t, mask, want)
	intact(t)
	scaled, unchanged := guarded[float32](len(x), 7)
	ScaleMasked(scaled, x, mask, on, off)
	product := make([]float32, len(x))
	for i, v := range x {
		switch {
		case mask[i/8]>>(i%8)&1 == 1:
			product[i] = v * on
		case off != 0:
			product[i] = v * off
		}
	}
	wantBits(t, scaled, product)
	unchanged(t)
}

func TestMasks(t *testing.T) {
	none := float32(math.NaN())
	eachSample(t, func(t *testing.T, x []float32) {
		checkMasks(t, x, 0, none, 1, 0)
		checkMasks(t, x, -0.5, 0.75, 1, 0)
		checkMasks(t, x, none, 1, 0.5, -0.01)
	})
}

func FuzzStorage(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) {
		checkMasks(t, x, math.Float32frombits(a), math.Float32frombits(b), 1, math.Float32frombits(a))
	})
}

func BenchmarkStorage(b *testing.B) {
	x, y := make([]float32, 1<<20), make([]float32, 1<<20)
	for i := range x {
		x[i] = float32(i%37) - 18
	}
	mask := make([]byte, len(x)/8)
	for name, f := range map[string]func(){
		"between": func() { Between(mask, x, 0, float32(math.NaN())) },
		"scale":   func() { ScaleMasked(y, x, mask, 1, 0) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				f()
			}
		})
	}
}
