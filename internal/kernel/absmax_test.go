package kernel

import (
	"math"
	"testing"
)

func checkAbsMaxBits(t *testing.T, x []float32) {
	t.Helper()
	if got, want := AbsMaxBits(x), absMaxBitsGo(x); got != want {
		t.Fatalf("%d elements: got %#08x, want %#08x", len(x), got, want)
	}
}

func checkColAbsMaxBits(t *testing.T, x []float32, cols int) {
	t.Helper()
	x = x[:len(x)/cols*cols]
	got, intact := guarded[uint32](cols, 5)
	want := make([]uint32, cols)
	for j := range want {
		want[j] = 5
	}
	ColAbsMaxBits(got, x)
	for i := range x {
		want[i%cols] = max(want[i%cols], absMaxBitsGo(x[i:i+1]))
	}
	wantSame(t, got, want)
	intact(t)
}

func TestAbsMaxBits(t *testing.T) {
	eachSample(t, checkAbsMaxBits)
}

func TestColAbsMaxBits(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		for _, cols := range columns(len(x)) {
			checkColAbsMaxBits(t, x, cols)
		}
	})
}

func TestAbsMaxBitsDistinguishesNaNFromInf(t *testing.T) {
	x := make([]float32, 100)
	x[70] = float32(math.Inf(-1))
	if got := AbsMaxBits(x); got != 0x7f800000 {
		t.Errorf("with Inf: got %#08x", got)
	}
	x[99] = float32(math.NaN())
	if got := AbsMaxBits(x); got <= 0x7f800000 {
		t.Errorf("with NaN: got %#08x", got)
	}
}

func TestColAbsMaxBitsRequiresWholeRows(t *testing.T) {
	wantPanic(t, "7 elements in rows of 3", func() { ColAbsMaxBits(make([]uint32, 3), make([]float32, 7)) })
	wantPanic(t, "no columns", func() { ColAbsMaxBits(nil, make([]float32, 7)) })
}

func FuzzAbsMaxBits(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, a, _ uint32) {
		checkAbsMaxBits(t, x)
		checkColAbsMaxBits(t, x, int(a%70)+1)
	})
}
