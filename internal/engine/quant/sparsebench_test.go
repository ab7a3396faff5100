package quant

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// BenchmarkSparseProduct reports the speed-up of MatMulIntegerToFloat over that of a weight without zeros, one worker:
// the measurements of spmm.IntDensity.
func BenchmarkSparseProduct(b *testing.B) {
	pool, row := op.NewPool(1), rowOf("MatMulIntegerToFloat")
	defer pool.Close()
	for _, k := range []int64{384, 768, 1536, 3072} {
		for _, m := range []int64{1, 2, 4, 8, 32, 128} {
			const n = 768
			measure := func(nonzero func(i int) bool) (fastest time.Duration) {
				x, w := quantizedValues(1, ir.Uint8, m, k), quantizedValues(2, ir.Int8, k, n)
				for i, b := range w.Data {
					w.Data[i] = byte(int8(b) / 2) // pairs fit in 16 bits, as most of trained weights do
					if !nonzero(i) {
						w.Data[i] = 0
					}
				}
				in := []*ir.Array{x, w, one(1), one(1), ir.NewArray(ir.Uint8, 1), ir.NewArray(ir.Int8, 1)}
				call, err := optest.NewCall(row, optest.Case{Type: row.Type, Version: 1, In: in,
					Consts: []int{1, 3, 5}}, pool)
				if err != nil {
					b.Fatal(err)
				}
				fastest = time.Hour
				for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
					t := time.Now()
					if err := row.Run(call); err != nil {
						b.Fatal(err)
					}
					fastest = min(fastest, time.Since(t))
					if testing.Short() {
						break
					}
				}
				return fastest
			}
			dense := measure(func(int) bool { return true })
			for _, percent := range []uint32{5, 10} {
				b.Run(fmt.Sprintf("%dx%dx%d/%d%%", m, n, k, percent), func(b *testing.B) {
					sparse := measure(func(i int) bool { return uint32(i)*2654435761>>8%100 < percent })
					for b.Loop() {
					}
					b.ReportMetric(float64(dense.Nanoseconds())/1000, "µs-dense")
					b.ReportMetric(float64(dense)/float64(sparse), "speed-up")
				})
			}
		}
	}
}
