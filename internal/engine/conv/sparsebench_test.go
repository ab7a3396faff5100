package conv

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// BenchmarkSparseConv reports the speed-up over the convolution with dense weights, one worker: the measurements of the
// cost model.
func BenchmarkSparseConv(b *testing.B) {
	same := attrs{"pads": []int{1, 1, 1, 1}}
	halved := attrs{"pads": []int{1, 1, 1, 1}, "strides": []int{2, 2}}
	for _, l := range []layer{
		{[]int64{1, 64, 56, 56}, []int64{64, 64, 3, 3}, same},
		{[]int64{1, 128, 28, 28}, []int64{128, 128, 3, 3}, same},
		{[]int64{1, 256, 14, 14}, []int64{256, 256, 3, 3}, same},
		{[]int64{1, 512, 7, 7}, []int64{512, 512, 3, 3}, same},
		{[]int64{8, 512, 7, 7}, []int64{512, 512, 3, 3}, same},
		{[]int64{1, 64, 56, 56}, []int64{128, 64, 3, 3}, halved},
		{[]int64{1, 256, 14, 14}, []int64{512, 256, 3, 3}, halved},
		{[]int64{1, 3, 224, 224}, []int64{64, 3, 7, 7}, attrs{"pads": []int{3, 3, 3, 3}, "strides": []int{2, 2}}},
		{[]int64{1, 256, 14, 14}, []int64{16, 256, 3, 3}, same},
		{[]int64{1, 16, 28, 28}, []int64{256, 16, 3, 3}, same},
		{[]int64{1, 16, 28, 28}, []int64{16, 16, 3, 3}, same},
		{[]int64{1, 32, 12, 12}, []int64{64, 32, 3, 3}, same},
		{[]int64{1, 64, 224, 224}, []int64{64, 64, 3, 3}, same},
		{[]int64{1, 256, 14, 14}, []int64{256, 64, 3, 3}, attrs{"group": 4, "pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 128, 28, 28}, []int64{128, 16, 3, 3}, attrs{"group": 8, "pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 64, 56, 56}, []int64{256, 64, 1, 1}, attrs{}},
		{[]int64{1, 512, 14, 14}, []int64{256, 512, 1, 1}, attrs{}},
		{[]int64{1, 64, 14, 14}, []int64{384, 64, 1, 1}, attrs{}},
		{[]int64{1, 384, 14, 14}, []int64{96, 384, 1, 1}, attrs{}},
		{[]int64{1, 576, 7, 7}, []int64{160, 576, 1, 1}, attrs{}},
		{[]int64{1, 160, 7, 7}, []int64{960, 160, 1, 1}, attrs{}},
		{[]int64{1, 960, 7, 7}, []int64{160, 960, 1, 1}, attrs{}},
		{[]int64{1, 320, 7, 7}, []int64{1280, 320, 1, 1}, attrs{}},
		{[]int64{1, 64, 6, 6}, []int64{384, 64, 1, 1}, attrs{}},
		{[]int64{1, 384, 6, 6}, []int64{96, 384, 1, 1}, attrs{}},
		{[]int64{1, 576, 3, 3}, []int64{160, 576, 1, 1}, attrs{}},
		{[]int64{1, 160, 3, 3}, []int64{960, 160, 1, 1}, attrs{}},
		{[]int64{1, 960, 3, 3}, []int64{160, 960, 1, 1}, attrs{}},
		{[]int64{1, 320, 3, 3}, []int64{1280, 320, 1, 1}, attrs{}},
		{[]int64{8, 960, 3, 3}, []int64{160, 960, 1, 1}, attrs{}},
		{[]int64{1, 960, 2, 2}, []int64{160, 960, 1, 1}, attrs{}},
		{[]int64{1, 960, 1, 1}, []int64{240, 960, 1, 1}, attrs{}},
		{[]int64{1, 256, 14, 14}, []int64{512, 256, 1, 1}, attrs{"strides": []int{2, 2}}},
	} {
		for _, density := range []float64{0.05, 0.1, 0.2, 0.3} {
			b.Run(fmt.Sprintf("%v of %v, density %v", l.w, l.x, density),
				func(b *testing.B) { benchSparse(b, l, density) })
		}
	}
}

func benchSparse(b *testing.B, l layer, density float64) {
	pool := op.NewPool(1)
	defer pool.Close()
	row := rowOf("Conv", 22)
	w := random(2, l.w...)
	dense, err := optest.NewCall(row, optest.Case{Type: "Conv", Version: 22, In: []*ir.Array{random(1, l.x...), w},
		Attrs: l.a.List(), Consts: []int{1}}, pool)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range ir.View[float32](w) {
		if r.Float64() >= density {
			ir.View[float32](w)[i] = 0
		}
	}
	sparse, node := *dense, *dense.Node
	sparse.Node = &node
	depth := int(op.Product(l.w[1:]))
	node.State = packSparse(nodeOf("Conv", l.a), w, spmm.Dense(gemm.Rows(ir.View[float32](w), depth), depth),
		kernel.SparseValues{}, pool)
	slow, fast := time.Hour, time.Hour
	for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
		slow = min(slow, runTime(b, row, dense))
		fast = min(fast, runTime(b, row, &sparse))
		if testing.Short() {
			break
		}
	}
	for b.Loop() {
	}
	b.ReportMetric(float64(slow.Nanoseconds())/1000, "µs-dense")
	b.ReportMetric(float64(slow)/float64(fast), "speed-up")
}

func runTime(b *testing.B, row *op.Op, c *op.Call) time.Duration {
	start := time.Now()
	if err := row.Run(c); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
