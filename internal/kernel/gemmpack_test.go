package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// eachLayout calls check with matrices in both orders, with gaps: element (i, j) is src[i*row+j*col].
func eachLayout(t *testing.T, rows, cols int, check func(t *testing.T, src []float32, row, col int)) {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	for _, gap := range []int{0, 3} {
		row, col := cols+gap, rows+gap
		check(t, gaussian(r, (rows-1)*row+cols), row, 1)
		check(t, gaussian(r, (cols-1)*col+rows), 1, col)
		check(t, gaussian(r, (rows-1)*2*row+(cols-1)*2+1), 2*row, 2)
	}
}

func TestPackPanels(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 16}, {4, 17}, {9, 31}, {33, 160}, {70, 300}} {
		k, n := size[0], size[1]
		eachLayout(t, k, n, func(t *testing.T, src []float32, row, col int) {
			panel := GemmPanel*k + 5
			got := gaussian(rand.New(rand.NewPCG(1, 2)), (n+15)/16*panel)
			want := slices.Clone(got)
			PackPanels(got, panel, src, row, col, k, n)
			for i := range (n + 15) / 16 * 16 * k {
				step, j := i%k, i/k
				v := float32(0)
				if j < n {
					v = src[step*row+j*col]
				}
				want[j/16*panel+step*16+j%16] = v
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d×%d with strides %d and %d: wrong panels", k, n, row, col)
			}
		})
	}
}

// Strips of other CPUs are packed too.
func TestPackStrips(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {5, 3}, {6, 4}, {12, 33}, {31, 70}, {150, 9}} {
		for _, high := range []int{6, 12} {
			m, k := size[0], size[1]
			eachLayout(t, m, k, func(t *testing.T, src []float32, row, col int) {
				got := gaussian(rand.New(rand.NewPCG(1, 2)), (m+high-1)/high*high*k)
				want := slices.Clone(got)
				packStrips(high, got, src, row, col, m, k)
				for i := range m {
					for step := range k {
						want[i/high*high*k+step*high+i%high] = src[i*row+step*col]
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d×%d with strides %d and %d: wrong strips of %d", m, k, row, col, high)
				}
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	const k, n = 256, 1024
	src, dst := gaussian(rand.New(rand.NewPCG(1, 2)), k*n), make([]float32, k*n+12*k)
	for _, c := range []struct {
		name string
		pack func()
	}{
		{"panels/rows", func() { PackPanels(dst, k*GemmPanel, src, n, 1, k, n) }},
		{"panels/columns", func() { PackPanels(dst, k*GemmPanel, src, 1, k, k, n) }},
		{"strips/rows", func() { PackStrips(dst, src, k, 1, n, k) }},
		{"strips/columns", func() { PackStrips(dst, src, 1, n, n, k) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(4 * k * n)
			for b.Loop() {
				c.pack()
			}
		})
	}
}
