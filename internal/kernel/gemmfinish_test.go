package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzGemmFinished(f *testing.F) {
	for n := range uint8(60) {
		f.Add(uint64(n), n, 3*n, n%9, n%3, n%2 == 0)
	}
	for m := range uint8(14) { // each number of rows of a last strip, and columns of the widest tile and more
		f.Add(uint64(m), m, uint8(72), uint8(0), uint8(4), false)
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k, layout uint8, biased bool) {
		p := newProduct(rand.New(rand.NewPCG(seed, 9)), int(m%80)+1, int(n%100)+1, int(k)+1)
		finish := GemmFinish{Lo: -1.5, Hi: float32(math.Inf(1))}
		if biased {
			finish = GemmFinish{p.b[:p.n], float32(math.Inf(-1)), 2}
		}
		got, want := slices.Clone(p.c), p.run(int(layout%3), true)
		GemmFinished(got, p.ldc, p.left(int(layout%3)), p.right(true), p.m, p.n, p.k, p.add, finish)
		for i := range p.m {
			row := want[i*p.ldc:][:p.n]
			for j := range finish.Bias {
				row[j] += finish.Bias[j]
			}
			clipGo(row, row, finish.Lo, finish.Hi)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d×%d×%d, layout %d: got %v, want %v", p.m, p.n, p.k, layout%3, got, want)
		}
	})
}
