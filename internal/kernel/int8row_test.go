package kernel

import (
	"math/rand/v2"
	"testing"
)

// newInt8Rows rounds random rows to int8 for products with q.
func newInt8Rows(r *rand.Rand, q *Quantized, rows int) *Int8Rows {
	a := &Int8Rows{K: q.K, Block: q.Int8Block()}
	values, each := a.Bytes(rows)
	a.Values, a.Scales, a.Sums = make([]byte, values), make([]float32, each/4), make([]float32, each/4)
	for i := range rows {
		x := gaussian(r, q.K)
		if i%3 == 1 {
			clear(x[:a.Block])
		}
		if i%3 == 2 { // the largest products
			for j := range x {
				x[j] = -5
			}
		}
		a.Set(i, x)
	}
	return a
}

// Products of int8 rows equal the definition bit by bit, also where the sums are the largest.
func FuzzInt8Row(f *testing.F) {
	for i := range uint8(72) {
		f.Add(uint64(i), i, i*11, i)
	}
	f.Fuzz(func(t *testing.T, seed uint64, k, n, kind uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		block := []int{16, 32, 64, 0}[kind%4]
		size := max(block, 32) * (1 + int(k)%9)
		if block == 0 { // one scale for all rows
			block = size
		}
		q := newQuantized(r, size, 1+int(n), 2<<(kind/8%3), block, int(kind)/4%2)
		if kind%3 == 0 {
			for i := range q.Values {
				q.Values[i] = 0xff
			}
		}
		a := newInt8Rows(r, &q.Quantized, 3)
		for i := range 3 {
			panel := r.IntN(q.Panels())
			got, check := guarded[float32](GemmPanel*min(2, q.Panels()-panel), 7)
			q.Int8Row(got, a, i, panel)
			check(t)
			for j := range got[:min(len(got), q.N-panel*GemmPanel)] {
				want := q.int8Go(a, i, panel*GemmPanel+j)
				wantBits(t, got[j:j+1], []float32{want})
			}
		}
	})
}
