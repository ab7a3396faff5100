package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Sums are bit-identical to those of GemmFloat with the same rows, and close to those of the twin.
func FuzzGemmAt(f *testing.F) {
	for n := range uint8(40) {
		f.Add(uint64(n), n, n%17, n%9)
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, columns, depth uint8) {
		r := rand.New(rand.NewPCG(seed, 8))
		m, n, k, row := int(rows), 1+int(columns)%GemmPanel, 1+int(depth), r.IntN(4)
		padded := (m + GemmAtRows - 1) / GemmAtRows * GemmAtRows
		x, b, at := gaussian(r, max(padded, GemmAtRows)*row+300), gaussian(r, k*GemmPanel), make([]int64, k)
		a := make([]float32, padded*k)
		for i := range at {
			at[i] = int64(r.IntN(300 - row))
			for j := range padded {
				a[j*k+i] = x[j*row+int(at[i])]
			}
		}
		ldc := n + r.IntN(5)
		got := gaussian(r, m*ldc+1)
		want := slices.Clone(got)
		GemmAt(got, ldc, x, row, at, b, m, n)
		if m > 0 {
			GemmFloat(want, ldc, GemmA{a, GemmRows() * k, k, 1}, GemmB{b, len(b), GemmPanel}, m, n, k, true)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d×%d products of %d: got %v, want %v", m, n, k, got, want)
		}
		twin, strip := make([]float32, GemmAtRows*GemmPanel), make([]float32, GemmAtRows*GemmPanel)
		gemmAtGo(twin, x, row, at, b)
		GemmAt(strip, GemmPanel, x, row, at, b, GemmAtRows, GemmPanel)
		for i := range twin {
			if math.Abs(float64(twin[i]-strip[i])) > 1e-5*float64(k) {
				t.Errorf("element %d of the twin is %v, want %v", i, twin[i], strip[i])
			}
		}
	})
}
