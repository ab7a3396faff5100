package spmm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// BenchmarkRight reports the speed-up over the product of the dense weight, one worker: the measurements of the cost model.
func BenchmarkRight(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []gemm.Shape{{K: 512, N: 512}, {K: 768, N: 768}, {K: 768, N: 3072}, {K: 4096, N: 4096}} {
		dense := gemm.PackFloat(workers(1), gemm.Rows(gaussian(r, s.K*s.N, 1), s.N), s.K, s.N)
		for _, density := range []float64{0.05, 0.1, 0.2, 0.3} {
			w := gemm.Rows(gaussian(r, s.K*s.N, density), s.N)
			sparse := Pack(workers(1), s.N, s.K, Dense(w.T(), s.K), kernel.SparseValues{})
			for _, s.M = range []int{1, 2, 4, 8, 32, 128} {
				b.Run(fmt.Sprintf("%dx%dx%d/%v", s.M, s.N, s.K, density), func(b *testing.B) {
					f := gemm.FloatProduct{A: gemm.Rows(gaussian(r, s.M*s.K, 1), s.K), C: make([]float32, s.M*s.N), Stride: s.N}
					work := ir.AlignedBytes(max(Work(s.N, s.M, 1), gemm.FloatWork(s, 1, 1, true)))
					fastest := func(run func()) time.Duration {
						best := time.Hour
						for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
							t := time.Now()
							run()
							best = min(best, time.Since(t))
						}
						return best
					}
					fast := fastest(func() { Right(workers(1), sparse, s, work, f) })
					f.Packed = dense
					slow := fastest(func() { gemm.Float(workers(1), s, work, f) })
					for b.Loop() {
					}
					b.ReportMetric(float64(slow.Nanoseconds())/1000, "µs-dense")
					b.ReportMetric(float64(slow)/float64(fast), "speed-up")
				})
			}
		}
	}
}
