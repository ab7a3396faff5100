package conv

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// deep are layers that exercise all gradient methods, in addition to those of the forward operators.
func deep() []layer {
	return append(layers(),
		layer{[]int64{3, 24, 40, 44}, []int64{26, 24, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		layer{[]int64{2, 5, 70, 66}, []int64{6, 5, 3, 3}, attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		layer{[]int64{2, 4, 21, 19}, []int64{6, 2, 4, 3},
			attrs{"group": 2, "strides": []int{2, 3}, "dilations": []int{4, 2}, "pads": []int{3, 0, 2, 5}}},
		layer{[]int64{2, 3, 9, 8}, []int64{4, 3, 1, 1}, attrs{"strides": []int{2, 2}}},
		layer{[]int64{2, 6, 50, 41}, []int64{10, 3, 1, 1}, attrs{"group": 2}},
		layer{[]int64{2, 3, 9, 8}, []int64{4, 3, 2, 2}, attrs{"strides": []int{3, 3}, "pads": []int{5, 4, 3, 6}}},
		layer{[]int64{2, 3, 12, 13}, []int64{9, 1, 3, 3},
			attrs{"group": 3, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		layer{[]int64{1, 2, 12, 23}, []int64{2, 1, 2, 20}, attrs{"group": 2, "dilations": []int{5, 1}}},
		layer{[]int64{1, 1, 30, 23}, []int64{12, 1, 5, 3}, attrs{"pads": []int{2, 1, 2, 1}}},
		layer{[]int64{3, 2, 1100}, []int64{4, 2, 5}, attrs{"strides": []int{2}}},
	)
}

func TestGradientsEqualTheDefinition(t *testing.T) {
	for i, l := range deep() {
		g := layerGeometry(t, l)
		x, w, dy := random(1, l.x...), random(2, l.w...), random(3, g.OutShape()...)
		wantX, wantW := gradientDefinition(g, wideOf(x), wideOf(w), wideOf(dy))
		dx, dw := gradients[float32](t, g, x, w, dy)
		near(t, fmt.Sprintf("dX of layer %d", i), dx, wantX, 2e-6)
		near(t, fmt.Sprintf("dW of layer %d", i), dw, wantW, 2e-6)
		dx, dw = gradients[float64](t, g, as(ir.Double, x), as(ir.Double, w), as(ir.Double, dy))
		near(t, fmt.Sprintf("dX of layer %d in double", i), dx, wantX, 1e-13)
		near(t, fmt.Sprintf("dW of layer %d in double", i), dw, wantW, 1e-13)
	}
}

// gradientDefinition loops over all kernel taps for each element of the output.
func gradientDefinition(g *Geometry, x, w, dy []float64) (dx, dw []float64) {
	dx, dw = make([]float64, len(x)), make([]float64, len(w))
	channels := g.Groups * g.OutC
	for i, v := range dy {
		o, m, image := i%g.OutArea(), i/g.OutArea()%channels, i/g.OutArea()/channels
		for c := range g.InC {
			plane := ((image*g.Groups+m/g.OutC)*g.InC + c) * g.InArea()
			for k := range g.kernelSize() {
				if at := g.under(o, k); at >= 0 {
					dx[plane+at] += v * w[(m*g.InC+c)*g.kernelSize()+k]
					dw[(m*g.InC+c)*g.kernelSize()+k] += v * x[plane+at]
				}
			}
		}
	}
	return dx, dw
}

// gradients computes both with one, two and three workers, which must be bit-identical, on memory that is not cleared,
// with and without memory for transposed weights.
func gradients[T float](t *testing.T, g *Geometry, x, w, dy *ir.Array) (dx, dw *ir.Array) {
	t.Helper()
	for _, workers := range []int{1, 2, 3} {
		pool := op.NewPool(workers)
		a, b := garbageArray(x.Spec()), garbageArray(w.Spec())
		var turned []T
		if workers > 1 {
			turned = ir.View[T](garbageArray(w.Spec()))
		}
		h := Halves{}
		InputGradient(g, pool, garbage(g.InputGradientWork(workers, workers > 1, h)), ImagesOf[T](a, false),
			ImagesOf[T](dy, false), ir.View[T](w), turned)
		WeightGradient(g, pool, garbage(g.WeightGradientWork(workers, h)), ir.View[T](b), ImagesOf[T](x, false),
			ImagesOf[T](dy, false))
		pool.Close()
		if dx != nil && (!bytes.Equal(a.Data, dx.Data) || !bytes.Equal(b.Data, dw.Data)) {
			t.Fatalf("not bit-identical with %d workers", workers)
		}
		dx, dw = a, b
	}
	return dx, dw
}

// A Float16 dx has a channel in float32 for each worker, in addition to the transposed weights that are in scratch
// memory unless they have memory of their own.
func TestInputGradientOfHalves(t *testing.T) {
	for i, l := range deep() {
		g := layerGeometry(t, l)
		x, w, dy := random(1, l.x...), random(2, l.w...), random(3, g.OutShape()...)
		want, _ := gradientDefinition(g, wideOf(x), wideOf(w), wideOf(dy))
		for _, workers := range []int{1, 3} {
			pool := op.NewPool(workers)
			dx := ir.NewArray(ir.Float16, x.Shape...)
			work := garbage(g.InputGradientWork(workers, false, Halves{X: true}))
			InputGradient(g, pool, work, ImagesOf[float32](dx, false), ImagesOf[float32](dy, false), ir.View[float32](w),
				nil)
			pool.Close()
			near(t, fmt.Sprintf("dX of layer %d in float16, %d workers", i, workers), dx, want, 1e-3)
		}
	}
}

// garbage is scratch memory filled with NaN.
func garbage(n int64) []byte {
	b := ir.AlignedBytes(n)
	for i := range b {
		b[i] = 0xff
	}
	return b
}

// Scratch memory does not grow with the batch, and is smaller than the patches of one image.
func TestGradientScratchMemory(t *testing.T) {
	for _, a := range []attrs{
		{"pads": []int{1, 1, 1, 1}},
		{"pads": []int{1, 1, 1, 1}, "strides": []int{2, 2}},
		{"pads": []int{1, 1, 1, 1}, "group": 16},
	} {
		channels := int64(64)
		if a["group"] != nil {
			channels = 4
		}
		work := func(batch int64) (dx, dw, patches int64) {
			g := layerGeometry(t, layer{[]int64{batch, 64, 56, 56}, []int64{64, channels, 3, 3}, a})
			return g.InputGradientWork(2, false, Halves{}), g.WeightGradientWork(2, Halves{}),
				4 * int64(g.Groups*g.Depth()*g.OutArea())
		}
		dx, dw, patches := work(8)
		if moreX, moreW, _ := work(64); moreX > dx || moreW > dw {
			t.Errorf("%v: scratch grows from %d and %d to %d and %d bytes with the batch", a, dx, dw, moreX, moreW)
		}
		if dx > patches || dw > patches {
			t.Errorf("%v: scratch is %d and %d bytes, patches of an image are %d", a, dx, dw, patches)
		}
	}
}
