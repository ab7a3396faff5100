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

func checkStochastic(t *testing.T, x []float32, first uint32) {
	t.Helper()
	if len(x) == 0 {
		return
	}
	lo, hi := MinMax(x)
	inverse := 255 / (hi - lo)
	got, intact := guarded[byte](len(x), 0xa5)
	QuantizeStochastic(got, x, lo, inverse, first)
	intact(t)
	want := make([]byte, len(x))
	quantizeStochasticGo(want, x, lo, inverse, first)
	wantSame(t, got, want)
}

func TestQuantizeStochastic(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		checkStochastic(t, x, 0)
		checkStochastic(t, x, math.MaxUint32-20)
	})
}

// The mean of many quantized values is the number itself, and each is one of the two next to it.
func TestQuantizeStochasticIsUnbiased(t *testing.T) {
	const n = 1 << 16
	x, q := make([]float32, n), make([]byte, n)
	for _, v := range []float32{0, 0.125, 7.25, 7.5, 100.9, 254.01, 255} {
		for i := range x {
			x[i] = v
		}
		QuantizeStochastic(q, x, 0, 1, uint32(v*1000))
		sum := 0.0
		for _, b := range q {
			if sum += float64(b); math.Abs(float64(b)-float64(v)) >= 1 {
				t.Fatalf("%v is quantized to %d", v, b)
			}
		}
		if mean := sum / n; math.Abs(mean-float64(v)) > 4*0.5/math.Sqrt(n) {
			t.Errorf("the mean of %v is %v", v, mean)
		}
	}
}

func FuzzStorage(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, b uint32) {
		checkMasks(t, x, math.Float32frombits(a), math.Float32frombits(b), 1, math.Float32frombits(a))
		checkStochastic(t, x, a)
	})
}

func BenchmarkStorage(b *testing.B) {
	x, y := make([]float32, 1<<20), make([]float32, 1<<20)
	for i := range x {
		x[i] = float32(i%37) - 18
	}
	mask, q := make([]byte, len(x)/8), make([]byte, len(x))
	for name, f := range map[string]func(){
		"between":    func() { Between(mask, x, 0, float32(math.NaN())) },
		"scale":      func() { ScaleMasked(y, x, mask, 1, 0) },
		"quantize":   func() { QuantizeStochastic(q, x, -18, 7, 1) },
		"dequantize": func() { Dequantize(y, q, false, 0.1, 0) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				f()
			}
		})
	}
}
