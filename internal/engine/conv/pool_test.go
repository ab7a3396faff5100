package conv

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func pools() []layer {
	return []layer{
		{x: []int64{2, 3, 17}, a: attrs{"kernel_shape": []int{4}, "strides": []int{3}, "pads": []int{1, 2}}},
		{x: []int64{1, 2, 40, 45}, a: attrs{"kernel_shape": []int{3, 3}, "strides": []int{2, 2},
			"pads": []int{1, 1, 1, 1}}},
		{x: []int64{1, 2, 8, 9}, a: attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "ceil_mode": 1,
			"pads": []int{1, 0, 2, 1}}},
		{x: []int64{1, 2, 8, 9}, a: attrs{"kernel_shape": []int{2, 2}, "dilations": []int{3, 2}, "ceil_mode": 1,
			"strides": []int{2, 2}}},
		{x: []int64{1, 2, 8, 9}, a: attrs{"kernel_shape": []int{3, 3}, "auto_pad": "SAME_LOWER",
			"strides": []int{2, 2}}},
		{x: []int64{2, 1, 5, 4, 6}, a: attrs{"kernel_shape": []int{2, 3, 2}, "pads": []int{1, 1, 0, 0, 1, 1}}},
	}
}

// eachWindow calls f for every window with the elements of its channel that it covers, and the number of its positions
// within the input and its padding.
func eachWindow(t *testing.T, l layer, f func(i int, channel int, elements []int, padded int)) {
	t.Helper()
	w, err := poolWindow(nodeOf("MaxPool", l.a), l.x[2:])
	if err != nil {
		t.Fatal(err)
	}
	g := &Geometry{window: w}
	for i := range int(l.x[0]*l.x[1]) * g.OutArea() {
		var covered []int
		padded := 0
		for k := range g.kernelSize() {
			if at := g.under(i%g.OutArea(), k); at >= 0 {
				covered = append(covered, at)
			}
			if g.padded(i%g.OutArea(), k) {
				padded++
			}
		}
		f(i, i/g.OutArea(), covered, padded)
	}
}

// padded reports whether kernel tap k is in the padding for output o.
func (g *Geometry) padded(o, k int) bool {
	for i := len(g.in) - 1; i >= 0; i-- {
		if p := o%g.out[i]*g.stride[i] - g.begin[i] + k%g.kernel[i]*g.dilation[i]; p >= g.in[i]+g.end[i] {
			return false
		}
		o /= g.out[i]
		k /= g.kernel[i]
	}
	return true
}

func TestPoolsEqualTheirDefinitions(t *testing.T) {
	for n, l := range pools() {
		x := random(1, l.x...)
		area := int(x.Elems() / (l.x[0] * l.x[1]))
		var top, average, padded, norm []float64
		eachWindow(t, l, func(i, channel int, elements []int, places int) {
			largest, sum, cubes := math.Inf(-1), 0.0, 0.0
			for _, e := range elements {
				v := float64(ir.View[float32](x)[channel*area+e])
				largest, sum, cubes = math.Max(largest, v), sum+v, cubes+math.Pow(math.Abs(v), 3)
			}
			top, norm = append(top, largest), append(norm, math.Cbrt(cubes))
			average, padded = append(average, sum/float64(len(elements))), append(padded, sum/float64(places))
		})
		for _, dt := range []ir.DType{ir.Float, ir.Double} {
			in := as(dt, x)
			near(t, fmt.Sprintf("MaxPool %d", n), must(t, "MaxPool", 22, l.a, in), top, 0)
			near(t, fmt.Sprintf("AveragePool %d", n), must(t, "AveragePool", 22, l.a, in), average, 1e-6)
			near(t, fmt.Sprintf("LpPool %d", n), must(t, "LpPool", 22, l.with("p", 3), in), norm, 1e-6)
			with := l.with("count_include_pad", 1)
			near(t, fmt.Sprintf("AveragePool %d with padding", n), must(t, "AveragePool", 22, with, in), padded, 1e-6)
		}
	}
}

func (l layer) with(name string, v any) attrs {
	a := attrs{name: v}
	for name, v := range l.a {
		a[name] = v
	}
	return a
}

func TestMaxPoolIndices(t *testing.T) {
	for _, columns := range []int{0, 1} {
		for n, l := range pools() {
			x := random(1, l.x...)
			out, err := run(rowOf("MaxPool", 22), 22, l.with("storage_order", columns), 2, 2, []*ir.Array{x})
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range ir.View[int64](out[1]) {
				if columns == 1 {
					at = fromColumns(at, l.x)
				}
				if got, want := ir.View[float32](x)[at], ir.View[float32](out[0])[i]; got != want {
					t.Fatalf("pool %d, storage_order %d: X has %v at index %d, want %v", n, columns, got, at, want)
				}
			}
		}
	}
}

// fromColumns converts an index that counts the first spatial axis as the innermost to a row-major one.
func fromColumns(at int64, shape []int64) int64 {
	area := int64(1)
	for _, d := range shape[2:] {
		area *= d
	}
	channel, rest := at/area, at%area
	to, step := int64(0), area
	for _, d := range shape[2:] {
		step /= d
		to += rest % d * step
		rest /= d
	}
	return channel*area + to
}

func TestMaxPoolOfBytesAndNaN(t *testing.T) {
	a := attrs{"kernel_shape": []int{2}}
	bytes := ir.ArrayOf([]int8{-128, -3, 5, -7}, 1, 1, 4)
	if got, want := ir.View[int8](must(t, "MaxPool", 12, a, bytes)), []int8{-3, 5, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	nan := float32(math.NaN())
	got := ir.View[float32](must(t, "MaxPool", 12, a, ir.ArrayOf([]float32{1, nan, 2, 3}, 1, 1, 4)))
	if got[0] == got[0] || got[1] == got[1] || got[2] != 3 {
		t.Errorf("got %v, want NaN, NaN, 3", got)
	}
}

func TestMaxUnpoolInvertsMaxPool(t *testing.T) {
	a := attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}
	x := random(1, 2, 3, 6, 8)
	out, err := run(rowOf("MaxPool", 22), 22, a, 1, 2, []*ir.Array{x})
	if err != nil {
		t.Fatal(err)
	}
	y := must(t, "MaxUnpool", 22, a, out[0], out[1])
	again := must(t, "MaxPool", 22, a, y)
	// The other elements of y are 0, which exceeds the maximum of negative ones.
	for i, v := range ir.View[float32](out[0]) {
		if got := ir.View[float32](again)[i]; got != max(v, 0) {
			t.Fatalf("element %d is %v, want %v", i, got, v)
		}
	}
	ir.View[int64](out[1])[3] = x.Elems()
	if _, err := run(rowOf("MaxUnpool", 22), 22, a, 1, 1, out); err == nil {
		t.Error("an index out of range is accepted")
	}
}

func TestGlobalPools(t *testing.T) {
	x := ir.ArrayOf([]float32{1, -2, 3, 4, 3, -4, 0, 0}, 1, 2, 2, 2)
	for _, c := range []struct {
		name string
		a    attrs
		want []float64
	}{
		{"GlobalAveragePool", nil, []float64{1.5, -0.25}},
		{"GlobalMaxPool", nil, []float64{4, 3}},
		{"GlobalLpPool", nil, []float64{math.Sqrt(30), 5}},
		{"GlobalLpPool", attrs{"p": 1}, []float64{10, 7}},
	} {
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.BFloat16} {
			near(t, c.name, must(t, c.name, 22, c.a, as(dt, x)), c.want, 4e-3)
		}
	}
}

// Rows of windows, and bands of a channel, of which most tests use one only.
func TestMaxRowsEqualMaxBand(t *testing.T) {
	for _, test := range []struct {
		in []int64
		a  attrs
	}{
		{[]int64{112, 112}, attrs{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{9, 34}, attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}},
		{[]int64{7, 21}, attrs{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "ceil_mode": 1,
			"dilations": []int{2, 1}}},
		{[]int64{6, 40}, attrs{"kernel_shape": []int{1, 3}, "strides": []int{1, 2}, "pads": []int{2, 5, 3, 4}}},
		{[]int64{59}, attrs{"kernel_shape": []int{2}, "strides": []int{2}, "auto_pad": "SAME_LOWER"}},
		{[]int64{4, 5, 30}, attrs{"kernel_shape": []int{3, 2, 3}, "strides": []int{2, 1, 2},
			"pads": []int{1, 0, 1, 1, 0, 1}}},
	} {
		w, err := poolWindow(nodeOf("MaxPool", test.a), test.in)
		if err != nil {
			t.Fatal(err)
		}
		rows := maxRowsOf(w)
		if rows == nil {
			t.Errorf("%v: windows %v are not pooled by rows", test.in, test.a)
			continue
		}
		x := ir.View[float32](random(3, test.in...))
		for i := 0; i < len(x); i += 5 {
			x[i] = []float32{float32(math.Inf(-1)), float32(math.Copysign(0, -1)), 0, float32(math.NaN())}[i/5%4]
			clear(x[i/2 : i/2+2])
			x[i/3] = float32(math.Inf(-1))
		}
		got, want := make([]float32, w.outLen()), make([]float32, w.outLen())
		rows.channel(got, x)
		maxBandOf[float32](w).channel(want, x)
		for i := range want {
			if g, w := got[i], want[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				t.Fatalf("%v, windows %v: output %d is %v, want %v", test.in, test.a, i, g, w)
			}
		}
	}
}

// Windows of -Inf have the maximum -Inf, as in ONNX's reference implementation, in every form of a pool; those that
// cover only padding have the lowest finite number, as in ONNX Runtime.
func TestMaxPoolOfInfinities(t *testing.T) {
	for _, a := range []attrs{
		{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}, "pads": []int{0, 4, 0, 4}},                 // rows
		{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}},                 // rows
		{"kernel_shape": []int{1, 3}, "strides": []int{1, 2}, "pads": []int{2, 5, 3, 4}},                 // rows
		{"kernel_shape": []int{3, 3}, "pads": []int{2, 2, 2, 2}},                                         // bands
		{"kernel_shape": []int{2, 2}, "dilations": []int{1, 23}, "pads": []int{3, 5, 3, 5}},              // bands
		{"kernel_shape": []int{2, 3}, "strides": []int{5, 4}, "pads": []int{2, 4, 9, 4}, "ceil_mode": 1}, // bands
	} {
		shape := []int64{1, 4, 6, 22}
		x := random(3, shape...)
		for i, v := range ir.View[float32](x) {
			if i%5 > 0 || v < 0 { // also windows of -Inf and others
				ir.View[float32](x)[i] = float32(math.Inf(-1))
			}
		}
		for i := range 6 * 22 {
			ir.View[float32](x)[i] = float32(math.Inf(-1)) // a channel of nothing else
		}
		for _, dt := range []ir.DType{ir.Float, ir.Double} {
			lowest := map[ir.DType]float64{ir.Float: -math.MaxFloat32, ir.Double: -math.MaxFloat64}[dt]
			var want []float64
			eachWindow(t, layer{x: shape, a: a}, func(_, channel int, elements []int, _ int) {
				top := math.Inf(-1)
				for _, e := range elements {
					top = max(top, float64(ir.View[float32](x)[channel*6*22+e]))
				}
				if len(elements) == 0 {
					top = lowest
				}
				want = append(want, top)
			})
			in := as(dt, x)
			indexed, err := run(rowOf("MaxPool", 22), 22, a, 1, 2, []*ir.Array{in})
			if err != nil {
				t.Fatal(err)
			}
			for form, y := range map[string]*ir.Array{
				"alone": must(t, "MaxPool", 22, a, in), "with indices": indexed[0], "channels last": pooledLast(t, a, in),
			} {
				if got := wideOf(y); !slices.Equal(got, want) {
					t.Errorf("%s, %v, %s: got %v, want %v", dt, a, form, got, want)
				}
			}
		}
	}
}

func TestOtherMaximaOfInfinities(t *testing.T) {
	x := ir.NewArray(ir.Float, 1, 1, 3, 3)
	for i := range x.Elems() {
		ir.View[float32](x)[i] = float32(math.Inf(-1))
	}
	for _, dt := range []ir.DType{ir.Float, ir.Double} {
		rois := as(dt, ir.ArrayOf([]float32{0, 0, 0, 2, 2}, 1, 5))
		for name, y := range map[string]*ir.Array{
			"GlobalMaxPool": must(t, "GlobalMaxPool", 22, nil, as(dt, x)),
			"MaxRoiPool":    must(t, "MaxRoiPool", 22, attrs{"pooled_shape": []int{1, 1}}, as(dt, x), rois),
		} {
			if got := wideOf(y)[0]; got != math.Inf(-1) {
				t.Errorf("%s of %s: got %v, want -Inf", name, dt, got)
			}
		}
	}
}

// pooledLast is MaxPool of x with channels last, with channels first.
func pooledLast(t *testing.T, a attrs, x *ir.Array) *ir.Array {
	t.Helper()
	w, err := poolWindow(nodeOf("MaxPool", a), x.Shape[2:])
	if err != nil {
		t.Fatal(err)
	}
	pool := op.NewPool(2)
	defer pool.Close()
	y := garbageArray(ir.Spec{DType: x.DType, Shape: append(x.Shape[:2:2], int64(w.out[0]), int64(w.out[1]))})
	c := &op.Call{Node: nodeOf("MaxPool", a), In: []*ir.Array{x}, Out: []*ir.Array{y}, Pool: pool}
	if x.DType == ir.Float {
		maxPoolLast(c, w, channelsLast[float32](x), ir.View[float32](y))
	} else {
		maxPoolLast(c, w, channelsLast[float64](x), ir.View[float64](y))
	}
	return y
}

// channelsLast are the elements of x, of one image, pixel by pixel.
func channelsLast[T float](x *ir.Array) []T {
	channels, v := int(x.Shape[1]), ir.View[T](x)
	out := make([]T, len(v))
	for i := range v {
		area := len(v) / channels
		out[i] = v[i%channels*area+i/channels]
	}
	return out
}

// The argmax is the first element that equals the maximum, and -0 equals +0, whichever path finds it: float32 alone,
// float32 with NaN elsewhere in the channel, and float64. The maximum is that of MaxPool.
func TestArgmaxOfZeros(t *testing.T) {
	shape := []int64{1, 1, 12, 40}
	for _, a := range []attrs{
		{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}},
		{"kernel_shape": []int{3, 3}, "strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}},
		{"kernel_shape": []int{2, 3}, "strides": []int{1, 2}, "pads": []int{1, 4, 3, 4}},
	} {
		x, out := random(5, shape...), []float32{-1, float32(math.Copysign(0, -1)), 0, 0x1p-149, -0x1p-149}
		for i, v := range ir.View[float32](x) {
			ir.View[float32](x)[i] = out[int(math.Abs(float64(v)*1e4))%5*(i/9%2)]
		}
		var want []uint8
		eachWindow(t, layer{x: shape, a: a}, func(int, int, []int, int) { want = append(want, 0) })
		w, err := poolWindow(nodeOf("MaxPool", a), shape[2:])
		if err != nil {
			t.Fatal(err)
		}
		g := &Geometry{window: w}
		for i := range want {
			top := math.Inf(-1)
			for k := range g.kernelSize() {
				if at := g.under(i, k); at >= 0 && float64(ir.View[float32](x)[at]) > top {
					top, want[i] = float64(ir.View[float32](x)[at]), uint8(k)
				}
			}
		}
		// The window of the last element is not compared.
		withNaN := slices.Clone(ir.View[float32](x))
		withNaN[len(withNaN)-1] = float32(math.Copysign(math.NaN(), -1))
		wantArgmax(t, fmt.Sprintf("float %v", a), w, ir.View[float32](x), want)
		wantArgmax(t, fmt.Sprintf("float %v with NaN", a), w, withNaN, want)
		wantArgmax(t, fmt.Sprintf("double %v", a), w, ir.View[float64](as(ir.Double, x)), want)
	}
}

func wantArgmax[T float](t *testing.T, what string, w *window, x []T, want []uint8) {
	t.Helper()
	y, places, top := make([]T, len(want)), make([]uint8, len(want)), make([]T, len(want))
	ArgmaxChannel[T, uint8](Windows{w})(y, places, x)
	maxChannel[T](w)(top, x)
	for i := range want {
		if x[len(x)-1] != x[len(x)-1] && top[i] != top[i] {
			continue
		}
		if places[i] != want[i] || y[i] != top[i] || math.Signbit(float64(y[i])) != math.Signbit(float64(top[i])) {
			t.Errorf("%s: output %d is %v at %d, want %v at %d", what, i, y[i], places[i], top[i], want[i])
		}
	}
}
