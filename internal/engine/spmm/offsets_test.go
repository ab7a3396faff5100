package spmm

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// Products with rows of a dense matrix that start anywhere, also on top of each other, are sums over all of its rows,
// stored whatever was in their place or added to it, in parts of any number.
func TestProductsAtOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, depth := rapid.IntRange(1, 70).Draw(t, "rows"),
			rapid.SampledFrom([]int{1, 7, gemm.Depth - 1, gemm.Depth, gemm.Depth + 1, 2 * gemm.Depth}).Draw(t, "depth")
		cols := 8 * rapid.IntRange(1, kernel.SparseWide()/8).Draw(t, "cols/8")
		add, count := rapid.Bool().Draw(t, "add"), rapid.IntRange(1, 5).Draw(t, "parts")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		weights, at := gaussian(r, rows*depth, 0.2), make([]int32, depth)
		for k := range at {
			at[k] = int32(r.IntN(500))
		}
		x := gaussian(r, 500+cols, 1)
		m := Pack(workers(2), rows, depth, Dense(gemm.Rows(weights, depth), depth), kernel.SparseValues{})
		offsets := Offsets(at)
		if want := (depth + gemm.Depth - 1) / gemm.Depth; len(offsets) != want {
			t.Fatalf("%d blocks of %d rows, want %d", len(offsets), depth, want)
		}
		next := 0
		for _, p := range m.Parts(count) {
			if p.From != next {
				t.Fatalf("a part from row %d on, want %d", p.From, next)
			}
			next = p.To
			sums := make([]float32, PartSums(p.To-p.From, cols))
			for i := range sums {
				if sums[i] = 3; !add {
					sums[i] = float32(math.NaN())
				}
			}
			p.MultiplyAt(sums, x, offsets, cols, add, make([]float32, kernel.SparseWork))
			for i := range p.To - p.From {
				for j := range cols {
					want, magnitude := 0.0, 1.0
					if add {
						want = 3
					}
					for k := range depth {
						term := float64(weights[(p.From+i)*depth+k]) * float64(x[int(at[k])+j])
						want, magnitude = want+term, magnitude+math.Abs(term)
					}
					if got := float64(sums[i*cols+j]); !(math.Abs(got-want) <= 1e-5*magnitude) {
						t.Fatalf("row %d, column %d: %v, want %v", p.From+i, j, got, want)
					}
				}
			}
		}
		if next != rows {
			t.Fatalf("parts of %d rows, want %d", next, rows)
		}
	})
}
