package conv

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Layers of a small classifier at batch 64 and of ResNet and MobileNet at batch 8.
func BenchmarkGradients(b *testing.B) {
	same, half := attrs{"pads": []int{1, 1, 1, 1}}, attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}
	for _, l := range []layer{
		{[]int64{64, 3, 32, 32}, []int64{32, 3, 3, 3}, same},
		{[]int64{64, 32, 16, 16}, []int64{64, 32, 3, 3}, same},
		{[]int64{64, 64, 8, 8}, []int64{128, 64, 3, 3}, same},
		{[]int64{8, 3, 224, 224}, []int64{64, 3, 7, 7}, attrs{"strides": []int{2, 2}, "pads": []int{3, 3, 3, 3}}},
		{[]int64{8, 64, 56, 56}, []int64{64, 64, 3, 3}, same},
		{[]int64{8, 64, 56, 56}, []int64{128, 64, 3, 3}, half},
		{[]int64{8, 128, 28, 28}, []int64{128, 128, 3, 3}, same},
		{[]int64{8, 64, 56, 56}, []int64{128, 64, 1, 1}, attrs{"strides": []int{2, 2}}},
		{[]int64{8, 256, 14, 14}, []int64{256, 256, 3, 3}, same},
		{[]int64{8, 512, 7, 7}, []int64{512, 512, 3, 3}, same},
		{[]int64{8, 96, 56, 56}, []int64{24, 96, 1, 1}, attrs{}},
		{[]int64{8, 144, 56, 56}, []int64{144, 1, 3, 3}, attrs{"group": 144, "pads": []int{1, 1, 1, 1}}},
		{[]int64{8, 144, 56, 56}, []int64{144, 1, 3, 3},
			attrs{"group": 144, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
	} {
		for _, workers := range []int{1, 2} {
			benchGradients(b, l, workers)
		}
	}
}

func benchGradients(b *testing.B, l layer, workers int) {
	g, err := GeometryOf(nodeOf("Conv", l.a), l.x, l.w)
	if err != nil {
		b.Fatal(err)
	}
	pool := op.NewPool(workers)
	defer pool.Close()
	x, w, y := singles(1, l.x), singles(2, l.w), singles(3, g.OutShape())
	xs, ys, h := Images[float32]{Values: x}, Images[float32]{Values: y}, Halves{}
	for _, f := range []struct {
		name string
		work int64
		run  func(work []byte)
	}{
		{"Y", g.ConvolveWork(workers, h), func(work []byte) { Convolve(g, pool, work, ys, xs, w) }},
		{"dX", g.InputGradientWork(workers, false, h),
			func(work []byte) { InputGradient(g, pool, work, xs, ys, w, nil) }},
		{"dW", g.WeightGradientWork(workers, h), func(work []byte) { WeightGradient(g, pool, work, w, xs, ys) }},
	} {
		work := ir.AlignedBytes(f.work)
		b.Run(fmt.Sprintf("%s of %v and %v by %d", f.name, l.x, l.w, workers), func(b *testing.B) {
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				f.run(work)
				best = min(best, time.Since(start))
			}
			b.ReportMetric(best.Seconds()*1e3, "ms") // of the fastest run, to reduce noise
		})
	}
}

func singles(seed uint64, shape []int64) []float32 { return ir.View[float32](random(seed, shape...)) }

// A channel of MaxPool, of the one that also returns the argmax, and of its gradient.
func BenchmarkMaxPools(b *testing.B) {
	for _, a := range []attrs{
		{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}},
		{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}},
	} {
		w, err := WindowsOf(nodeOf("MaxPool", a), []int64{32, 32})
		if err != nil {
			b.Fatal(err)
		}
		x, y := singles(1, []int64{32, 32}), make([]float32, w.Out())
		places := make([]uint8, len(y))
		keep, gradient := ArgmaxChannel[float32, uint8](w), MaxGradientChannel[float32, uint8](w)
		for name, f := range map[string]func(){
			"MaxPool":     func() { keep(y, nil, x) },
			"MaxPoolKeep": func() { keep(y, places, x) },
			"MaxPoolGrad": func() { gradient(x, y, places) },
		} {
			b.Run(fmt.Sprint(name, a["kernel_shape"]), func(b *testing.B) {
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					f()
					best = min(best, time.Since(start))
				}
				// of the fastest run, to reduce noise
				b.ReportMetric(float64(best.Nanoseconds())/float64(len(y)), "ns/output")
			})
		}
	}
}
