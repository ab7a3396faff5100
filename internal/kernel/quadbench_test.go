package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Quantized convolutions of MobileNetV2 whose operands are in the L1 cache: outputs per second.
func BenchmarkQuadConv(b *testing.B) {
	for _, s := range []struct{ k, n, positions int }{{16, 96, 256}, {96, 32, 256}, {192, 64, 64}, {960, 160, 32},
		{144, 32, 784}, {576, 64, 56}, {576, 128, 28}, {384, 64, 196}, {512, 256, 14}, {512, 512, 7}} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.positions, s.n, s.k), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			all := roundTo(s.n, QuadBlock)
			q := &QuadConv{s.n, []Run{{0, int64(s.k / 4)}}, randomBytes(r, s.n*s.k), make([]int32, all),
				quadRequantization(r, all, false)}
			x, y := randomBytes(r, s.positions*s.k), make([]byte, s.positions*s.n)
			for b.Loop() {
				q.Slide(y, s.n, x, s.positions, s.k, 0, s.n)
			}
			b.ReportMetric(float64(len(y))*float64(b.N)/1e9/b.Elapsed().Seconds(), "outputs/ns")
			b.ReportMetric(float64(2*s.k*len(y))*float64(b.N)/1e9/b.Elapsed().Seconds(), "GOP/s")
		})
	}
}

func BenchmarkQuadWindow(b *testing.B) {
	const channels, positions = 192, 32
	r := rand.New(rand.NewPCG(1, 2))
	q := &QuadWindow{channels, 1, make([]int64, 12), randomBytes(r, 12*channels), make([]int32, channels),
		quadRequantization(r, channels, false)}
	for i := range q.At {
		q.At[i] = int64(i/3*(positions+2)+i%3) * channels
	}
	x, y := randomBytes(r, 4*(positions+2)*channels+channels+QuadBlock), make([]byte, positions*channels)
	for b.Loop() {
		q.Slide(y, x, positions, channels)
	}
	b.ReportMetric(float64(len(y))*float64(b.N)/1e9/b.Elapsed().Seconds(), "outputs/ns")
}
