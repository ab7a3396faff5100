package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Sums are bit-identical to those of GemmFinished with the same rows, and close to those of the twin.
func FuzzGemmAt(f *testing.F) {
	for n := range uint8(60) {
		f.Add(uint64(n), n, n, n%9, n%3 > 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, columns, depth uint8, biased bool) {
		r := rand.New(rand.NewPCG(seed, 8))
		m, n, k, row := GemmAtRows+int(rows), 1+int(columns), 1+int(depth), r.IntN(4)
		panels := (n + GemmPanel - 1) / GemmPanel
		x, b, at := gaussian(r, (m-1)*row+300), gaussian(r, panels*k*GemmPanel), make([]int64, k)
		a := make([]float32, m*k)
		for i := range at {
			at[i] = int64(r.IntN(300))
			for j := range m {
				a[j*k+i] = x[j*row+int(at[i])]
			}
		}
		finish := GemmFinish{Lo: -1.5, Hi: float32(math.Inf(1))}
		if biased {
			finish = GemmFinish{gaussian(r, n), float32(math.Inf(-1)), 2}
		}
		ldc := n + r.IntN(5)
		got := gaussian(r, m*ldc)
		want, twin := slices.Clone(got), slices.Clone(got)
		GemmAt(got, ldc, x, row, at, b, m, n, finish)
		GemmFinished(want, ldc, GemmA{a, GemmRows() * k, k, 1}, GemmB{Data: b, Panel: k * GemmPanel, K: GemmPanel}, m,
			n, k, false, finish)
		if !slices.Equal(got, want) {
			t.Errorf("%d×%d products of %d: got %v, want %v", m, n, k, got, want)
		}
		plain := gemmAt{twin, ldc, x, row, at, b, m, n, finish}
		plain.plain()
		for i := range twin {
			if math.Abs(float64(twin[i]-got[i])) > 1e-5*float64(k) {
				t.Errorf("element %d of the twin is %v, want %v", i, twin[i], got[i])
			}
		}
	})
}
