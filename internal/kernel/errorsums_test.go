package kernel

import (
	"math"
	"testing"
)

func checkErrorSums(t *testing.T, ref, got []float32) {
	t.Helper()
	start := ErrorSums{Ref2: 1, Err2: 2, Got2: 3, Dot: 4, MaxErr: 0x1p-100}
	sums, want := start, start
	sums.Add(ref, got)
	var l errorLanes
	l.addGo(ref, got)
	want.fold(&l)
	if g, w := sums.bits(), want.bits(); g != w {
		t.Fatalf("%d elements: got %x, want %x", len(ref), g, w)
	}
}

func (e *ErrorSums) bits() [5]uint64 {
	return [5]uint64{
		math.Float64bits(e.Ref2), math.Float64bits(e.Err2), math.Float64bits(e.Got2), math.Float64bits(e.Dot),
		uint64(math.Float32bits(e.MaxErr)),
	}
}

// halves splits a sample into a reference and an approximation.
func halves(x []float32) (ref, got []float32) {
	n := len(x) / 2
	return x[:n], x[len(x)-n:]
}

func TestErrorSums(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		ref, got := halves(x)
		checkErrorSums(t, ref, got)
	})
}

func TestErrorSumsAreExactOnIntegers(t *testing.T) {
	var sums, want ErrorSums
	for n := range 50 {
		ref, got := make([]float32, n), make([]float32, n)
		for i := range ref {
			r, g := float64(i-20), float64(3*i%11)
			ref[i], got[i] = float32(r), float32(g)
			want.Ref2 += r * r
			want.Err2 += (g - r) * (g - r)
			want.Got2 += g * g
			want.Dot += r * g
			want.MaxErr = max(want.MaxErr, float32(math.Abs(g-r)))
		}
		sums.Add(ref, got)
		if sums != want {
			t.Fatalf("after %d elements: got %+v, want %+v", n, sums, want)
		}
	}
}

func TestErrorSumsKeepNaN(t *testing.T) {
	var sums ErrorSums
	sums.Add([]float32{1, float32(math.NaN())}, []float32{1, 2})
	sums.Add([]float32{1}, []float32{1})
	if sums.Err2 == sums.Err2 || sums.MaxErr == sums.MaxErr || sums.Got2 != 6 {
		t.Errorf("got %+v", sums)
	}
}

func TestErrorSumsWantEqualLengths(t *testing.T) {
	wantPanic(t, "short got", func() { new(ErrorSums).Add(make([]float32, 2), make([]float32, 1)) })
}

func FuzzErrorSums(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) {
		ref, got := halves(x)
		checkErrorSums(t, ref, got)
	})
}
