package conv

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// Layers of image classifiers on one worker, with constant and with computed weights.
func BenchmarkConv(b *testing.B) {
	for _, l := range []layer{
		{[]int64{1, 3, 224, 224}, []int64{64, 3, 7, 7}, attrs{"strides": []int{2, 2}, "pads": []int{3, 3, 3, 3}}},
		{[]int64{1, 64, 56, 56}, []int64{64, 64, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 128, 28, 28}, []int64{128, 128, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 256, 14, 14}, []int64{256, 256, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 512, 7, 7}, []int64{512, 512, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 96, 56, 56}, []int64{24, 96, 1, 1}, attrs{}},
		{[]int64{1, 144, 56, 56}, []int64{144, 1, 3, 3}, attrs{"group": 144, "pads": []int{1, 1, 1, 1}}},
	} {
		for _, constant := range [][]int{nil, {1}} {
			b.Run(fmt.Sprintf("%v of %v prepared %v", l.w, l.x, len(constant) > 0), func(b *testing.B) {
				bench(b, l, constant)
			})
		}
	}
}

func bench(b *testing.B, l layer, constant []int) {
	pool := op.NewPool(1)
	defer pool.Close()
	row := rowOf("Conv", 22)
	in := []*ir.Array{random(1, l.x...), random(2, l.w...)}
	c, err := optest.NewCall(row, optest.Case{Type: "Conv", Version: 22, In: in, Attrs: l.a.List(), Consts: constant},
		pool)
	if err != nil {
		b.Fatal(err)
	}
	products := float64(c.Out[0].Elems() * op.Product(l.w[1:]))
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := row.Run(c); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(products/best.Seconds()/1e9, "Gmac/s") // of the fastest run, to reduce noise
}
