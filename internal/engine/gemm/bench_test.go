package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Squares, BERT's projections, convolutions of ResNet, and small products.
var benchmarked = []Shape{
	{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
	{128, 768, 768}, {128, 3072, 768}, {128, 768, 3072},
	{64, 3136, 576}, {512, 49, 4608}, {256, 196, 2304},
	{1, 512, 784}, {1, 4096, 4096}, {4, 4096, 4096}, {128, 128, 64},
}

func BenchmarkFloat(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shape := range benchmarked {
		s := sample{shape, FloatProduct{
			A: Rows(gaussian(r, shape.M*shape.K), shape.K), B: Rows(gaussian(r, shape.K*shape.N), shape.N),
			C: make([]float32, shape.M*shape.N), Stride: shape.N,
		}}
		for form := range forms[:2] {
			forms[form].apply(&s)
			b.Run(fmt.Sprintf("%dx%dx%d/%s", s.M, s.N, s.K, forms[form].name), func(b *testing.B) {
				work := ir.AlignedBytes(FloatWork(s.Shape, 1, 1, s.Packed != nil))
				for b.Loop() {
					Float(workers(1), s.Shape, work, s.FloatProduct)
				}
				report(b, s.Shape)
			})
		}
	}
}

func BenchmarkInt(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, shape := range benchmarked {
		s := newIntSample(r, shape.M, shape.N, shape.K)
		s.A, s.B, s.BSigned = Matrix[byte]{s.A.Data, shape.K, 1}, normal(r, shape.K, shape.N, 36, true), true
		for form := range intForms[:2] {
			intForms[form].apply(s)
			b.Run(fmt.Sprintf("%dx%dx%d/%s", s.M, s.N, s.K, intForms[form].name), func(b *testing.B) {
				work := ir.AlignedBytes(IntWork(s.Shape, 1, 1, s.Packed != nil, false))
				for b.Loop() {
					Int(workers(1), s.Shape, work, s.IntProduct)
				}
				report(b, s.Shape)
			})
		}
	}
}

// report reports multiplications and additions per second.
func report(b *testing.B, s Shape) {
	ops := 2 * float64(s.M) * float64(s.N) * float64(s.K) * float64(b.N)
	b.ReportMetric(ops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
