package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// BERT's heads at two lengths, a long sequence, and one new token after many.
func BenchmarkRun(b *testing.B) {
	for _, s := range []Shape{{128, 128, 64, 64}, {512, 512, 64, 64}, {4096, 4096, 64, 64}, {1, 128, 64, 64}, {1, 2048, 128, 128}} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.Queries, s.Keys, s.Size), func(b *testing.B) {
			const heads = 12
			r := rand.New(rand.NewPCG(1, 2))
			hs := make([]Head[float32], heads)
			for i := range hs {
				hs[i] = head[float32](s, random(r, s.Queries*s.Size), random(r, s.Keys*s.Size), random(r, s.Keys*s.Value))
			}
			p := op.NewPool(1)
			defer p.Close()
			work := ir.AlignedBytes(Work[float32](s, heads, 1))
			for b.Loop() {
				Run(p, s, work, Options[float32]{Scale: 0.125}, hs)
			}
			products := float64(heads) * float64(s.Queries) * float64(s.Keys) * float64(s.Size+s.Value)
			b.ReportMetric(2*products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
