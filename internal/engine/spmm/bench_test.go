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

// BenchmarkRight reports the speed-up over the product of the dense weight, one worker: the measurements of the cost
// model.
func BenchmarkRight(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []gemm.Shape{{K: 512, N: 512}, {K: 768, N: 768}, {K: 768, N: 3072}, {K: 4096, N: 4096}} {
		dense := gemm.PackFloat(workers(1), gemm.Rows(gaussian(r, s.K*s.N, 1), s.N), s.K, s.N)
		quantized := &kernel.Quantized{K: s.K, N: s.N, Bits: 8, Block: s.K, Zero: 128}
		quantized.Values, quantized.Scales = make([]byte, quantized.ValueBytes()),
			make([]float32, quantized.BlockValues())
		for _, density := range []float64{0.05, 0.1, 0.2, 0.3, 0.5} {
			w := gemm.Rows(gaussian(r, s.K*s.N, density), s.N)
			floats := Pack(workers(1), s.N, s.K, Dense(w.T(), s.K), kernel.SparseValues{})
			int8s := Pack(workers(1), s.N, s.K, Dense(w.T(), s.K),
				kernel.SparseValues{Type: kernel.SparseInt8, Scales: make([]float32, s.N)})
			for _, s.M = range []int{1, 2, 4, 8, 32, 128} {
				f := gemm.FloatProduct{A: gemm.Rows(gaussian(r, s.M*s.K, 1), s.K), C: make([]float32, s.M*s.N),
					Stride: s.N}
				q := f
				f.Packed, q.Quantized = dense, quantized
				reportRight(b, fmt.Sprintf("%dx%dx%d/%v/float", s.M, s.N, s.K, density), s, floats, f)
				reportRight(b, fmt.Sprintf("%dx%dx%d/%v/int8", s.M, s.N, s.K, density), s, int8s, q)
			}
		}
	}
}

// reportRight measures products of a sparse weight and of the dense one of f.
func reportRight(b *testing.B, name string, s gemm.Shape, sparse *Matrix, f gemm.FloatProduct) {
	b.Run(name, func(b *testing.B) {
		work := ir.AlignedBytes(max(Work(s.N, s.M, 1), gemm.FloatWork(s, 1, 1, f.Packed != nil)))
		fastest := func(run func()) time.Duration {
			best := time.Hour
			for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
				t := time.Now()
				run()
				best = min(best, time.Since(t))
				if testing.Short() {
					break
				}
			}
			return best
		}
		slow := fastest(func() { gemm.Float(workers(1), s, work, f) })
		own := gemm.FloatProduct{A: f.A, C: f.C, Stride: f.Stride}
		fast := fastest(func() { Right(workers(1), sparse, s, work, own) })
		for b.Loop() {
		}
		b.ReportMetric(float64(slow.Nanoseconds())/1000, "µs-dense")
		b.ReportMetric(float64(slow)/float64(fast), "speed-up")
	})
}
