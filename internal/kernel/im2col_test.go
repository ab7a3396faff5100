package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzPackLanes(f *testing.F) {
	for lane := range uint8(16) {
		f.Add(uint64(lane), lane, 17-lane, uint8(3), lane%4, lane%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, lane, n, rows, stride uint8, keep bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		at := int(lane % 16)
		wide := int(n) % (17 - at)
		step, high := 1+int(stride%4), 1+int(rows%9)
		to, from := 16+r.IntN(40), r.IntN(50)
		x := random(r, (high-1)*from+max(wide-1, 0)*step+1)
		got := random(r, (high-1)*to+16)
		want := slices.Clone(got)
		PackLanes(got, x, high, to, from, at, wide, step, keep)
		packLanesGo(want, x, high, to, from, at, wide, step, keep)
		if !slices.Equal(got, want) {
			t.Errorf("%d elements, %d apart, at lane %d of %d rows: got %v, want %v", wide, step, at, high, got, want)
		}
	})
}

func FuzzCopyRows(f *testing.F) {
	for n := range uint8(36) {
		f.Add(uint64(n), n, 1+n%4)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, rows uint8) {
		r := rand.New(rand.NewPCG(seed, 4))
		wide, high := int(n), int(rows%9)
		to, from := wide+r.IntN(20), r.IntN(50)
		x, got := random(r, max(high-1, 0)*from+wide), random(r, max(high-1, 0)*to+wide)
		want := slices.Clone(got)
		CopyRows(got, to, x, from, high, wide)
		copyRowsGo(want, to, x, from, high, wide)
		if !slices.Equal(got, want) {
			t.Errorf("%d elements of %d rows: got %v, want %v", wide, high, got, want)
		}
	})
}

func FuzzPackLanesAt(f *testing.F) {
	for lane := range uint8(16) {
		f.Add(uint64(lane), lane, 16-lane, uint8(3), lane%4, lane%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, lane, n, rows, stride uint8, keep bool) {
		r := rand.New(rand.NewPCG(seed, 3))
		first := int(lane % 16)
		wide, step, high := 1+int(n)%(16-first), 1+int(stride%4), int(rows%40)
		reach := r.IntN(90)
		x := random(r, reach+(wide-1)*step+1)
		at := make([]int32, high)
		for i := range at {
			at[i] = int32(r.IntN(reach + 1))
		}
		got := random(r, high*16)
		want := slices.Clone(got)
		PackLanesAt(got, x, at, reach, first, wide, step, keep)
		packLanesAtGo(want, x, at, first, wide, step, keep)
		if !slices.Equal(got, want) {
			t.Errorf("%d elements, %d apart, at lane %d of rows at %v: got %v, want %v", wide, step, first, at, got,
				want)
		}
	})
}

func FuzzWeightRows(f *testing.F) {
	for n := range uint8(50) {
		f.Add(uint64(n), n, n%12, n%10)
	}
	f.Fuzz(func(t *testing.T, seed uint64, wide, taps, high uint8) {
		r := rand.New(rand.NewPCG(seed, 2))
		n, rows := int(wide), int(high%11)
		to, from := n+r.IntN(5), r.IntN(90)
		x := random(r, rows*from+n+r.IntN(60))
		at := make([]int64, taps%26)
		for i := range at {
			at[i] = int64(r.IntN(len(x) - max(rows-1, 0)*from - n + 1))
		}
		w, first := random(r, len(at)), float32(r.NormFloat64())
		got := random(r, rows*to)
		want := slices.Clone(got)
		WeightRows(got, to, x, from, rows, n, at, w, first)
		weightRowsGo(want, to, x, from, rows, n, at, w, first)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%d rows of %d, element %d: got %v, want %v", rows, n, i, got[i], want[i])
			}
		}
	})
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
