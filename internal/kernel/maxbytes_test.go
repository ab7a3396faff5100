package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzMaxBytes(f *testing.F) {
	for n := range uint8(80) {
		f.Add(uint64(n), n*3, n%9, n%12, n%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, channels, positions, taps uint8, signed bool) {
		r := rand.New(rand.NewPCG(seed, 11))
		m := &MaxBytes{Channels: int(channels), At: make([]int64, 1+taps%30), Signed: signed}
		for i := range m.At {
			m.At[i] = int64(r.IntN(500))
		}
		places, step := int(positions%20), r.IntN(300)
		x, got := randomBytes(r, max(places-1, 0)*step+500+m.Channels), randomBytes(r, places*m.Channels+1)
		want := slices.Clone(got)
		m.Slide(got, x, places, step)
		m.plain(want, x, places, step, 0)
		if !slices.Equal(got, want) {
			t.Errorf("%d channels, %d positions, %d apart, taps %v: got %v, want %v", channels, places, step, m.At,
				got, want)
		}
	})
}
