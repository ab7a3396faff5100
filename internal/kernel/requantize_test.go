package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func FuzzRequantize(f *testing.F) {
	for n := range uint8(80) {
		f.Add(uint64(n), n, n%5, n%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, wide, high uint8, signed bool) {
		r := rand.New(rand.NewPCG(seed, 5))
		cols, rows := 1+int(wide), int(high%6)
		scale, bias, sums := random(r, cols), random(r, cols), make([]int32, rows*cols)
		for i := range scale {
			scale[i] *= 1e-3
		}
		for i := range sums {
			sums[i] = int32(r.Uint32()) >> r.IntN(32)
		}
		c, zero := IntRange{0, 255}, int32(r.IntN(256))
		if signed {
			c, zero = IntRange{-128, 127}, zero-128
		}
		to := cols + r.IntN(9)
		got, want := make([]byte, rows*to), make([]byte, rows*to)
		q := Requantization{scale, bias, zero, c}
		Requantize(got, to, sums, q)
		for i := range rows {
			requantizeGo(want[i*to:], sums[i*cols:(i+1)*cols], q)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d rows of %d columns: got %v, want %v", rows, cols, got, want)
		}
	})
}

// Halves are rounded to even before the zero point is added.
func TestRequantizeRounds(t *testing.T) {
	got := make([]byte, 8)
	Requantize(got, 8, []int32{1, 3, -1, 5, 1000, -1000, 7, 0}, Requantization{
		[]float32{.5, .5, .5, .5, 1, 1, 1, 1}, []float32{0, 0, 0, 0, 0, 0, .25, .75}, 10, IntRange{0, 200},
	})
	if want := []byte{10, 12, 10, 12, 200, 0, 17, 11}; !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
