package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// halfPatterns are random bit patterns.
func halfPatterns(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	for i := range x {
		x[i] = uint16(r.Uint32())
	}
	return x
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(v, w float32) bool { return math.Float32bits(v) == math.Float32bits(w) })
}

func FuzzPackHalves(f *testing.F) {
	for lane := range uint8(16) {
		f.Add(uint64(lane), lane, 17-lane, uint8(3), lane%4, lane%2 == 0)
		f.Add(uint64(lane), uint8(0), uint8(16), lane, lane%2, false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, lane, n, rows, stride uint8, keep bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		at := int(lane % 16)
		wide := int(n) % (17 - at)
		step, high := 1+int(stride%4), 1+int(rows%9)
		to, from := 16+r.IntN(40), r.IntN(50)
		x := halfPatterns(r, (high-1)*from+max(wide-1, 0)*step+1+r.IntN(40))
		got := random(r, (high-1)*to+16)
		want := slices.Clone(got)
		PackHalves(got, x, high, to, from, at, wide, step, keep)
		packHalvesGo(want, x, high, to, from, at, wide, step, keep)
		if !sameBits(got, want) {
			t.Errorf("%d elements, %d apart, at lane %d of %d rows: got %v, want %v", wide, step, at, high, got, want)
		}
	})
}

func FuzzPackHalvesAt(f *testing.F) {
	for lane := range uint8(16) {
		f.Add(uint64(lane), lane, 16-lane, uint8(3), lane%4, lane%2 == 0)
		f.Add(uint64(lane), uint8(0), uint8(15), lane, lane%2, false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, lane, n, rows, stride uint8, keep bool) {
		r := rand.New(rand.NewPCG(seed, 3))
		first := int(lane % 16)
		wide, step, high := 1+int(n)%(16-first), 1+int(stride%4), int(rows%40)
		reach := r.IntN(90)
		x := halfPatterns(r, reach+(wide-1)*step+1+r.IntN(40))
		at := make([]int32, high)
		for i := range at {
			at[i] = int32(r.IntN(reach + 1))
		}
		got := random(r, high*16)
		want := slices.Clone(got)
		PackHalvesAt(got, x, at, reach, first, wide, step, keep)
		packHalvesAtGo(want, x, at, first, wide, step, keep)
		if !sameBits(got, want) {
			t.Errorf("%d elements, %d apart, at lane %d of rows at %v: got %v, want %v", wide, step, first, at, got,
				want)
		}
	})
}

func FuzzTransposeHalves(f *testing.F) {
	for n := range uint8(20) {
		f.Add(uint64(n), n, 19-n)
		f.Add(uint64(n), 3*n, uint8(16))
	}
	f.Fuzz(func(t *testing.T, seed uint64, high, wide uint8) {
		r := rand.New(rand.NewPCG(seed, 4))
		rows, cols := int(high%70), int(wide%70)
		from, to := cols+r.IntN(9), rows+r.IntN(9)
		src := halfPatterns(r, max(rows-1, 0)*from+cols)
		got := random(r, max(cols-1, 0)*to+rows)
		want := slices.Clone(got)
		TransposeHalves(got, to, src, from, rows, cols)
		for i := range rows {
			for j := range cols {
				f32FromF16Go(want[j*to+i:][:1], src[i*from+j:][:1])
			}
		}
		if !sameBits(got, want) {
			t.Errorf("%d×%d elements of rows %d and %d apart: got %v, want %v", rows, cols, from, to, got, want)
		}
	})
}

func FuzzF16Saturated(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) {
		got, want := make([]uint16, len(x)), make([]uint16, len(x))
		F16Saturated(got, x)
		f16SaturatedGo(want, x)
		if !slices.Equal(got, want) {
			t.Errorf("got %#04x, want %#04x of %v", got, want, x)
		}
	})
}

// Values out of range become the largest finite ones, and NaN is kept.
func TestF16SaturatedAtItsLimits(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{inf, -inf, 65504, 65519, 65520, -7e4, 1, float32(math.NaN()), 65536, -65505}
	want := []uint16{0x7bff, 0xfbff, 0x7bff, 0x7bff, 0x7bff, 0xfbff, 0x3c00, 0x7e00, 0x7bff, 0xfbff}
	got := make([]uint16, len(x))
	F16Saturated(got, x)
	if !slices.Equal(got, want) {
		t.Errorf("got %#04x, want %#04x", got, want)
	}
}
