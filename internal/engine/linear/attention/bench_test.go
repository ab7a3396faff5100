package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// benchmark runs twelve heads of a shape, after change.
func benchmark(b *testing.B, s Shape, change func(h *Head[float32])) {
	const heads = 12
	r := rand.New(rand.NewPCG(1, 2))
	hs := make([]Head[float32], heads)
	for i := range hs {
		hs[i] = head[float32](s, random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value))
		change(&hs[i])
	}
	p := op.NewPool(1)
	defer p.Close()
	work := ir.AlignedBytes(Work[float32](s, heads, 1))
	for b.Loop() {
		Run(p, s, work, Options[float32]{Scale: 0.125}, hs)
	}
	products := float64(heads) * float64(s.Queries) * float64(s.Keys) * float64(s.Size+s.Value)
	b.ReportMetric(2*products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// BERT's heads at two lengths, a long sequence, and one new token after many.
func BenchmarkRun(b *testing.B) {
	for _, s := range []Shape{shapeOf(128, 128, 64, 64), shapeOf(512, 512, 64, 64), shapeOf(4096, 4096, 64, 64),
		shapeOf(1, 128, 64, 64), shapeOf(1, 2048, 128, 128)} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.Queries, s.Keys, s.Size),
			func(b *testing.B) { benchmark(b, s, func(*Head[float32]) {}) })
	}
}

// Causal heads in the blocks of causal shapes, and in those of others.
func BenchmarkCausal(b *testing.B) {
	for _, s := range []Shape{shapeOf(128, 128, 32, 32), shapeOf(128, 128, 64, 64), shapeOf(256, 256, 64, 64),
		shapeOf(512, 512, 64, 64)} {
		for _, s.Causal = range []bool{false, true} {
			b.Run(fmt.Sprintf("%dx%dx%d/%v", s.Queries, s.Keys, s.Size, s.Causal), func(b *testing.B) {
				benchmark(b, s, func(h *Head[float32]) { h.KeyRange = func(i int) (int, int) { return 0, i + 1 } })
			})
		}
	}
}
