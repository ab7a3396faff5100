package kernel

import (
	"math"
	"testing"
)

func checkMinMax(t *testing.T, x []float32) {
	t.Helper()
	if len(x) == 0 {
		return
	}
	lo, hi := MinMax(x)
	low, high := minMaxGo(ordered(x[0]), ordered(x[0]), x)
	wantBits(t, []float32{lo, hi}, []float32{fromOrdered(low), fromOrdered(high)})
}

func checkColMinMax(t *testing.T, x []float32, cols int) {
	t.Helper()
	x = x[:len(x)/cols*cols]
	lo, lowIntact := guarded[float32](cols, 0.25)
	hi, highIntact := guarded[float32](cols, 0.25)
	ColMinMax(lo, hi, x)
	for j := range cols {
		low, high := ordered(0.25), ordered(0.25)
		for i := j; i < len(x); i += cols {
			low, high = minMaxGo(low, high, x[i:i+1])
		}
		wantBits(t, []float32{lo[j], hi[j]}, []float32{fromOrdered(low), fromOrdered(high)})
	}
	lowIntact(t)
	highIntact(t)
}

func TestMinMax(t *testing.T) {
	eachSample(t, checkMinMax)
}

func TestColMinMax(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, cols := range columns(len(x)) {
			checkColMinMax(t, x, cols)
		}
	})
}

func TestMinMaxOrdersAsNumbersDo(t *testing.T) {
	negZero := float32(math.Copysign(0, -1))
	ascending := []float32{
		float32(math.Inf(-1)), -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32,
		negZero, 0, math.SmallestNonzeroFloat32, 1, math.MaxFloat32, float32(math.Inf(1)),
	}
	for i := range ascending {
		for j := i; j < len(ascending); j++ {
			lo, hi := MinMax([]float32{ascending[j], ascending[i]})
			wantBits(t, []float32{lo, hi}, []float32{ascending[i], ascending[j]})
		}
	}
}

func TestMinMaxOfNothing(t *testing.T) {
	wantPanic(t, "MinMax(nil)", func() { MinMax(nil) })
}

func FuzzMinMax(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, _ uint32) {
		checkMinMax(t, x)
		checkColMinMax(t, x, int(a%70)+1)
	})
}
