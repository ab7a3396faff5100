package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzByteWindow(f *testing.F) {
	for n := range uint8(70) {
		f.Add(uint64(n), n, n%5, n%12, n%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, wide, positions, taps uint8, signed bool) {
		r := rand.New(rand.NewPCG(seed, 6))
		channels, places, step := int(wide), int(positions%9), r.IntN(200)
		at := make([]int64, taps&^1)
		for i := range at {
			at[i] = int64(r.IntN(500))
		}
		x := randomBytes(r, 500+max(places-1, 0)*step+channels)
		w, first := make([]int16, DepthwiseWeights(channels, len(at))), make([]int32, channels)
		for i := range w {
			w[i] = int16(r.IntN(511) - 255)
		}
		for i := range first {
			first[i] = int32(r.IntN(1 << 18))
		}
		q := Requantization{random(r, channels), random(r, channels), 7, IntRange{0, 250}}
		for i := range q.Scale {
			q.Scale[i] *= 1e-3
		}
		if signed {
			q.Levels = IntRange{-100, 127}
		}
		b := &ByteWindow{at, w, first, signed, q}
		got := randomBytes(r, places*channels+1) // the last one is not written
		want := slices.Clone(got)
		b.Slide(got, x, places, step)
		b.plain(want, x, places, step, 0)
		if !slices.Equal(got, want) {
			t.Errorf("%d channels, %d positions, %d apart, taps %v: got %v, want %v", channels, places, step, at, got,
				want)
		}
	})
}

func FuzzFloatWindow(f *testing.F) {
	for n := range uint8(40) {
		f.Add(uint64(n), n, n%10, n%5)
	}
	f.Fuzz(func(t *testing.T, seed uint64, positions, taps, groups uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		channels := int(groups%8) * DepthwiseGroup
		places, from, to := int(positions), r.IntN(70), channels+r.IntN(20)
		x := random(r, max(places-1, 0)*from+channels+r.IntN(200))
		b := &FloatWindow{make([]Tap, taps%26), random(r, channels+r.IntN(200)), random(r, channels),
			-1.5 - r.Float32(), 2}
		for i := range b.Taps {
			b.Taps[i] = Tap{r.IntN(len(x) - max(places-1, 0)*from - channels + 1), r.IntN(len(b.W) - channels + 1)}
		}
		got := random(r, places*to+1) // also between the positions
		want := slices.Clone(got)
		b.Slide(got, to, x, from, places)
		b.plain(want, to, x, from, places)
		if !slices.Equal(got, want) {
			t.Errorf("%d positions, %d apart, of %d channels, taps %v: got %v, want %v", places, from, channels,
				b.Taps, got, want)
		}
	})
}

// A window of two taps over two positions of three channels.
func TestByteWindow(t *testing.T) {
	x := []byte{1, 2, 3, 4, 5, 250, 7, 8, 9}
	w := make([]int16, DepthwiseWeights(3, 2))
	for c := range 3 {
		w[DepthwiseWeight(c, 0, 2)], w[DepthwiseWeight(c, 1, 2)] = 10, int16(-c)
	}
	got, q := make([]byte, 6), Requantization{[]float32{1, 1, .5}, []float32{0, 0, 100}, 1, IntRange{0, 255}}
	(&ByteWindow{[]int64{0, 3}, w, []int32{0, 100, 0}, false, q}).Slide(got, x, 2, 3)
	if want := []byte{11, 20 - 5 + 101, 0, 41, 50 - 8 + 101, 255}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
