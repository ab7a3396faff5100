package spmm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// BenchmarkPack packs a weight as sparse, and as dense, in one worker.
func BenchmarkPack(b *testing.B) {
	const k, n = 768, 3072
	for _, density := range []float64{0.05, 0.1, 0.2} {
		w := gaussian(rand.New(rand.NewPCG(1, 2)), k*n, density)
		for name, m := range map[string]gemm.Matrix[float32]{"by column": gemm.Rows(w, n).T(),
			"by row": gemm.Rows(w, k)} {
			b.Run(fmt.Sprintf("%s/%v", name, density), func(b *testing.B) {
				b.SetBytes(4 * k * n)
				for b.Loop() {
					Pack(workers(1), n, k, Dense(m, k), kernel.SparseValues{})
				}
			})
		}
	}
	w := gemm.Rows(gaussian(rand.New(rand.NewPCG(1, 2)), k*n, 1), n)
	b.Run("dense", func(b *testing.B) {
		b.SetBytes(4 * k * n)
		for b.Loop() {
			gemm.PackFloat(workers(1), w, k, n)
		}
	})
}
