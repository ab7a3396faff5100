package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestZeroWordsBelowIsZeroBelowInOtherTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]uint64, 1000)
	for i := range x {
		x[i] = r.Uint64()
	}
	for _, limit := range []uint64{0, 1, 1 << 52, 0x7ff0 << 48, math.MaxInt64, 1 << 63} {
		checkZeroWords(t, x, limit)
	}
	half := make([]uint16, 1<<16)
	for i := range half {
		half[i] = uint16(i)
	}
	for _, limit := range []uint16{0, 1, 0x3c00, 0x7c00, 0x7fff, 0x8000} {
		checkZeroWords(t, half, limit)
	}
}

func checkZeroWords[T uint16 | uint64](t *testing.T, x []T, limit T) {
	t.Helper()
	want := slices.Clone(x)
	for i, v := range want {
		if v<<1>>1 < limit {
			want[i] = 0
		}
	}
	got := slices.Clone(x)
	ZeroWordsBelow(got, limit)
	wantSame(t, got, want)
}

func TestMaxWordSeesMagnitudes(t *testing.T) {
	if got := MaxWord([]uint16{0x3c00, 0xbc01, 0x8000}); got != 0x3c01 {
		t.Errorf("got %#x, want 0x3c01", got)
	}
	nan := math.Float64bits(math.NaN())
	if got := MaxWord([]uint64{1, nan | 1<<63, 0x7ff0 << 48}); got != nan {
		t.Errorf("got %#x, want the NaN", got)
	}
	if got := MaxWord([]uint64(nil)); got != 0 {
		t.Errorf("empty: got %#x", got)
	}
}
