package conv

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	stdreflect "reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/ir"
)

// A layer is a convolution to try.
type layer struct {
	x, w []int64
	a    attrs
}

func layers() []layer {
	return []layer{
		{[]int64{2, 3, 17}, []int64{5, 3, 4}, attrs{"strides": []int{3}, "pads": []int{1, 2}}},
		{[]int64{1, 4, 9, 11}, []int64{6, 4, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 4, 9, 11}, []int64{6, 2, 3, 2},
			attrs{"group": 2, "strides": []int{2, 1}, "pads": []int{0, 1, 2, 0}}},
		{[]int64{1, 3, 40, 50}, []int64{8, 3, 5, 5}, attrs{"strides": []int{2, 2}, "auto_pad": "SAME_UPPER"}},
		{[]int64{1, 3, 10, 9}, []int64{2, 3, 3, 2},
			attrs{"dilations": []int{2, 3}, "auto_pad": "SAME_LOWER", "strides": []int{1, 1}}},
		{[]int64{2, 20, 7, 7}, []int64{18, 20, 1, 1}, attrs{}},
		{[]int64{1, 6, 14, 70}, []int64{6, 1, 3, 3}, attrs{"group": 6, "pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 3, 5, 6}, []int64{6, 1, 3, 5},
			attrs{"group": 3, "strides": []int{2, 2}, "pads": []int{2, 3, 1, 4}, "dilations": []int{1, 2}}},
		{[]int64{2, 35, 7, 6}, []int64{35, 1, 3, 3},
			attrs{"group": 35, "strides": []int{2, 1}, "pads": []int{1, 2, 0, 1}, "dilations": []int{1, 2}}},
		{[]int64{1, 16, 300, 9}, []int64{16, 1, 3, 3},
			attrs{"group": 16, "strides": []int{1, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 4, 30}, []int64{4, 1, 3}, attrs{"group": 4, "strides": []int{3}, "auto_pad": "VALID"}},
		{[]int64{1, 2, 5, 6, 7}, []int64{3, 2, 2, 3, 2},
			attrs{"strides": []int{1, 2, 1}, "pads": []int{1, 0, 1, 0, 2, 1}}},
		{[]int64{1, 2, 5, 6, 7}, []int64{2, 1, 2, 3, 2}, attrs{"group": 2}},
		{[]int64{1, 300, 4, 5}, []int64{7, 300, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 1, 3, 3}, []int64{1, 1, 1, 1}, attrs{"strides": []int{4, 4}}},
		{[]int64{1, 24, 13, 15}, []int64{26, 24, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 56, 7, 7}, []int64{56, 28, 3, 3}, attrs{"group": 2, "pads": []int{0, 2, 1, 0}}},
		{[]int64{1, 24, 5, 90}, []int64{24, 24, 3, 3}, attrs{"auto_pad": "SAME_UPPER"}},
		{[]int64{1, 16, 4, 5}, []int64{130, 16, 3, 3}, attrs{}},
		{[]int64{3, 25, 3, 3}, []int64{24, 25, 3, 3}, attrs{}},
		{[]int64{1, 260, 3, 9}, []int64{16, 260, 3, 3}, attrs{"pads": []int{4, 5, 0, 9}}},
	}
}

func TestConvEqualsTheDefinition(t *testing.T) {
	for i, l := range layers() {
		for dt, tolerance := range map[ir.DType]float64{ir.Float: 1e-5, ir.Double: 1e-6, ir.Float16: 2e-3,
			ir.BFloat16: 2e-2} {
			x, w, b := as(dt, random(1, l.x...)), as(dt, random(2, l.w...)), as(dt, random(3, l.w[0]))
			got := must(t, "Conv", 22, l.a, x, w, b)
			want := definition(t, l, x, w, b)
			near(t, fmt.Sprintf("layer %d of %s", i, dt), got, want, tolerance)
			got = prepared(t, "Conv", 22, l.a, x, w, b)
			near(t, fmt.Sprintf("layer %d of %s, prepared", i, dt), got, want, tolerance)
		}
	}
}

// definition sums over all kernel taps, in float64.
func definition(t *testing.T, l layer, xa, wa, ba *ir.Array) []float64 {
	t.Helper()
	g := layerGeometry(t, l)
	x, w, b := wideOf(xa), wideOf(wa), wideOf(ba)
	channels := g.Groups * g.OutC
	y := make([]float64, g.Batch*channels*g.OutArea())
	for i := range y {
		o, m, image := i%g.OutArea(), i/g.OutArea()%channels, i/g.OutArea()/channels
		y[i] = b[m]
		for c := range g.InC {
			plane := part(x, (image*g.Groups+m/g.OutC)*g.InC+c, g.InArea())
			for k := range g.kernelSize() {
				if at := g.under(o, k); at >= 0 {
					y[i] += w[(m*g.InC+c)*g.kernelSize()+k] * plane[at]
				}
			}
		}
	}
	return y
}

// under is the element of a channel at tap k for output o, or -1.
func (g *Geometry) under(o, k int) int {
	at, step := 0, 1
	for i := len(g.in) - 1; i >= 0; i-- {
		p := o%g.out[i]*g.stride[i] - g.begin[i] + k%g.kernel[i]*g.dilation[i]
		if p < 0 || p >= g.in[i] {
			return -1
		}
		at += p * step
		step *= g.in[i]
		o /= g.out[i]
		k /= g.kernel[i]
	}
	return at
}

func layerGeometry(t *testing.T, l layer) *Geometry {
	t.Helper()
	g, err := GeometryOf(nodeOf("Conv", l.a), l.x, l.w)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Vectors of channels compute small images, and vectors of columns those that are added to an input: their sums must be
// the same.
func TestDepthwiseSumsAreTheSameInBothForms(t *testing.T) {
	for i, l := range layers() {
		g := layerGeometry(t, l)
		if d := DepthwiseOf(g); d == nil || d.channels() == nil {
			continue
		}
		x, w, b := random(1, l.x...), random(2, l.w...), random(3, l.w[0])
		byChannels := must(t, "Conv", 22, l.a, x, w, b)
		byRows := must(t, "FusedConv", 1, l.a, x, w, b, ir.NewArray(ir.Float, g.OutShape()...))
		if !bytes.Equal(byChannels.Data, byRows.Data) {
			t.Errorf("layer %d: not bit-identical", i)
		}
	}
}

func TestFusedConvAddsAndActivates(t *testing.T) {
	for i, l := range layers() {
		x, w, b := random(1, l.x...), random(2, l.w...), random(3, l.w[0])
		plain := must(t, "Conv", 22, l.a, x, w, b)
		z := random(4, plain.Shape...)
		a := attrs{"activation": "LeakyRelu", "activation_params": []float32{0.25}}
		for name, v := range l.a {
			a[name] = v
		}
		want := wideOf(plain)
		for j, v := range wideOf(z) {
			if want[j] += v; want[j] < 0 {
				want[j] *= 0.25
			}
		}
		near(t, fmt.Sprintf("layer %d", i), must(t, "FusedConv", 1, a, x, w, b, z), want, 1e-5)
		near(t, fmt.Sprintf("layer %d, prepared", i), prepared(t, "FusedConv", 1, a, x, w, b, z), want, 1e-5)
	}
}

func TestFusedConvInPlaceIsBitIdentical(t *testing.T) {
	l := layers()[1]
	x, w := random(1, l.x...), random(2, l.w...)
	z := random(4, layerGeometry(t, l).OutShape()...)
	want := must(t, "FusedConv", 1, l.a, x, w, nil, z)
	row := rowOf("FusedConv", 1)
	got, err := optest.RunRow(row, optest.Case{Type: row.Type, In: []*ir.Array{x, w, nil, z}, Attrs: l.a.List(),
		Workers: 2, InPlace: 4})
	if err != nil || !bytes.Equal(got[0].Data, want.Data) {
		t.Errorf("not bit-identical in place, %v", err)
	}
}

// Transposed convolution is the adjoint of convolution: ⟨Conv(x), y⟩ = ⟨x, ConvTranspose(y)⟩.
func TestConvTransposeIsTheAdjointOfConv(t *testing.T) {
	for i, l := range layers() {
		g := layerGeometry(t, l)
		a := attrs{"output_padding": g.rest()}
		for name, v := range l.a {
			a[name] = v
		}
		if a["auto_pad"] != nil {
			delete(a, "auto_pad")
			a["pads"] = append(append([]int(nil), g.begin...), g.end...)
		}
		for dt, tolerance := range map[ir.DType]float64{ir.Float: 1e-4, ir.Double: 1e-9} {
			x, w := as(dt, random(1, l.x...)), as(dt, random(2, l.w...))
			y := as(dt, random(3, g.OutShape()...))
			left := dot(wideOf(must(t, "Conv", 22, l.a, x, w)), wideOf(y))
			right := dot(wideOf(x), wideOf(must(t, "ConvTranspose", 22, a, y, w)))
			if !(math.Abs(left-right) <= tolerance*math.Max(1, math.Abs(left))) {
				t.Errorf("layer %d of %s: %v and %v", i, dt, left, right)
			}
		}
	}
}

// rest is the number of elements after the last window of each axis: the output_padding of a transposed convolution.
func (g *Geometry) rest() []int {
	rest := make([]int, len(g.in))
	for i := range rest {
		rest[i] = (g.in[i] + g.begin[i] + g.end[i] - g.span(i)) % g.stride[i]
	}
	return rest
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func TestConvTransposeOutputShape(t *testing.T) {
	x, w := random(1, 1, 2, 5), random(2, 2, 3, 4)
	for _, c := range []struct {
		a    attrs
		want int64
	}{
		{attrs{"strides": []int{2}}, 12},
		{attrs{"strides": []int{2}, "pads": []int{1, 1}, "output_padding": []int{1}}, 11},
		{attrs{"strides": []int{2}, "output_shape": []int{9}}, 9},
		{attrs{"strides": []int{2}, "output_shape": []int{1, 3, 9}}, 9},
		{attrs{"strides": []int{3}, "auto_pad": "SAME_UPPER"}, 15},
	} {
		if y := must(t, "ConvTranspose", 22, c.a, x, w); y.Shape[2] != c.want {
			t.Errorf("%v: got %s, want %d places", c.a, y, c.want)
		}
	}
}

// With offsets of 0 a deformable convolution equals a convolution.
func TestDeformConvWithoutOffsetsEqualsConv(t *testing.T) {
	for i, l := range layers() {
		if l.a["auto_pad"] != nil {
			continue
		}
		g := layerGeometry(t, l)
		shape := g.OutShape()
		shape[1] = int64(g.kernelSize() * len(g.in))
		for _, dt := range []ir.DType{ir.Float, ir.Double} {
			x, w, b := as(dt, random(1, l.x...)), as(dt, random(2, l.w...)), as(dt, random(3, l.w[0]))
			got := must(t, "DeformConv", 22, l.a, x, w, ir.NewArray(dt, shape...), b)
			near(t, fmt.Sprintf("layer %d of %s", i, dt), got, definition(t, l, x, w, b), 1e-5)
		}
	}
}

// Constant weights with enough zeros are multiplied as a sparse matrix, bit-identically.
func TestSparseConvIsBitIdentical(t *testing.T) {
	for i, l := range []layer{
		{[]int64{2, 150, 7, 7}, []int64{130, 150, 1, 1}, attrs{}},
		{[]int64{1, 150, 9, 11}, []int64{130, 150, 1, 1}, attrs{"strides": []int{2, 2}}},
		{[]int64{1, 300, 1, 1}, []int64{90, 300, 1, 1}, attrs{}},
		{[]int64{2, 64, 17, 19}, []int64{260, 64, 1, 1}, attrs{}},
		{[]int64{2, 300, 5, 7}, []int64{260, 150, 1, 1}, attrs{"group": 2}},
		{[]int64{1, 40, 13, 15}, []int64{64, 40, 3, 3}, attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 20, 40}, []int64{200, 20, 5}, attrs{}},
		{[]int64{2, 130, 7, 7}, []int64{132, 130, 3, 3}, attrs{"strides": []int{1, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 30, 40, 33}, []int64{70, 30, 5, 3},
			attrs{"dilations": []int{2, 3}, "pads": []int{4, 1, 0, 3}, "strides": []int{3, 2}}},
		// in several bands
		{[]int64{1, 64, 70, 70}, []int64{64, 64, 3, 3}, attrs{"dilations": []int{2, 1}, "pads": []int{2, 1, 2, 1}}},
		{[]int64{3, 80, 9, 9}, []int64{120, 40, 7, 7},
			attrs{"group": 2, "pads": []int{3, 3, 3, 3}, "dilations": []int{1, 2}}},
		{[]int64{1, 64, 20, 20}, []int64{64, 64, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 160, 3, 5}, []int64{130, 160, 2, 9}, attrs{"auto_pad": "SAME_UPPER"}},
	} {
		w := random(2, l.w...)
		for at := range ir.View[float32](w) {
			if at%7 > 0 {
				ir.View[float32](w)[at] = 0
			}
		}
		if made := prepareSparse(nodeOf("Conv", l.a), w, op.NewPool(1)); made == nil ||
			float64(made.Bytes) > 0.25*float64(w.Bytes()) {
			t.Errorf("layer %d is not packed: %+v", i, made)
		}
		preparedIsBitIdentical(t, fmt.Sprintf("layer %d", i), l, w)
		halves := []*ir.Array{as(ir.Float16, random(1, l.x...)), as(ir.Float16, w)}
		if made, err := prepareConv(nodeOf("Conv", l.a), []*ir.Array{nil, halves[1]}, op.NewPool(1)); err != nil ||
			float64(made.Bytes) > 0.3*float64(halves[1].Bytes()) {
			t.Errorf("layer %d of Float16 is not packed: %+v", i, made)
		}
		if want, got := must(t, "Conv", 22, l.a, halves...),
			prepared(t, "Conv", 22, l.a, halves...); !bytes.Equal(got.Data, want.Data) {
			t.Errorf("layer %d of Float16: not bit-identical to computed weights", i)
		}
	}
}

// So they are for any kernel, also longer than a block of outputs, stride, dilation and padding.
func TestSparseConvOfAnyWindowIsBitIdentical(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := layer{x: []int64{1, 1}, a: attrs{}}
		var kernel, strides, dilations, begin, end []int
		for _, longest := range []int{6, 300} {
			k, d := rapid.IntRange(1, longest).Draw(r, "kernel"), rapid.IntRange(1, 3).Draw(r, "dilation")
			b, e := rapid.IntRange(0, k/2).Draw(r, "begin"), rapid.IntRange(0, k/2).Draw(r, "end")
			reach := (k-1)*d + 1
			l.x = append(l.x, int64(max(reach-b-e, 1)+rapid.IntRange(0, 2*longest).Draw(r, "more")))
			kernel, dilations, begin, end = append(kernel, k), append(dilations, d), append(begin, b), append(end, e)
			strides = append(strides, rapid.IntRange(1, 5).Draw(r, "stride"))
		}
		l.w = []int64{int64(2048/(kernel[0]*kernel[1]) + 8), 1, int64(kernel[0]), int64(kernel[1])}
		l.a = attrs{"strides": strides, "dilations": dilations, "pads": append(begin, end...)}
		w := random(2, l.w...)
		for at := range ir.View[float32](w) {
			if at%9 > 0 {
				ir.View[float32](w)[at] = 0
			}
		}
		if prepareSparse(nodeOf("Conv", l.a), w, op.NewPool(1)) == nil {
			r.Skip("kernels of few elements stay dense") // rapid fails if it skips most
		}
		x := random(1, l.x...)
		if want, got := must(t, "Conv", 22, l.a, x, w),
			prepared(t, "Conv", 22, l.a, x, w); !bytes.Equal(got.Data, want.Data) {
			r.Fatalf("x%v w%v %v: not bit-identical to computed weights", l.x, l.w, l.a)
		}
	})
}

// Weights in the form of positions and values are packed like dense ones.
func TestSparseConvOfPositions(t *testing.T) {
	for groups := range int64(3) {
		w := random(2, 60, 40, 3, 3)
		var positions []int32
		var values []float32
		for at, v := range ir.View[float32](w) {
			if at%6 > 0 {
				ir.View[float32](w)[at] = 0
				continue
			}
			positions, values = append(positions, int32(at)), append(values, v)
		}
		n := nodeOf("Conv", attrs{"group": groups})
		want, err := prepareConv(n, []*ir.Array{nil, w}, op.NewPool(2))
		if err != nil {
			t.Fatal(err)
		}
		n.Packed = packedweight.NewSparse(len(positions), positions, values)
		if got, err := prepareConv(n, []*ir.Array{nil, {DType: w.DType, Shape: w.Shape}},
			op.NewPool(2)); err != nil || !stdreflect.DeepEqual(got, want) {
			t.Errorf("%d groups: %v, packed otherwise than the dense weight", groups, err)
		}
	}
}

func TestPackedConvIsBitIdentical(t *testing.T) {
	for i, l := range []layer{
		{[]int64{2, 150, 3, 3}, []int64{130, 150, 1, 1}, attrs{}},
		{[]int64{1, 64, 1, 1}, []int64{16, 64, 1, 1}, attrs{}},
		{[]int64{31, 80, 1, 1}, []int64{40, 80, 1, 1}, attrs{}},
		{[]int64{13, 300, 3, 4}, []int64{50, 300, 1, 1}, attrs{}},
		{[]int64{25, 40, 5, 5}, []int64{50, 40, 3, 3}, attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 300, 9, 23}, []int64{280, 300, 1, 1}, attrs{}},
		{[]int64{1, 150, 9, 11}, []int64{20, 150, 1, 1}, attrs{"strides": []int{2, 2}}},
		{[]int64{1, 40, 13, 15}, []int64{90, 40, 3, 3}, attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}},
		{[]int64{2, 20, 8, 5}, []int64{37, 20, 5, 5}, attrs{"pads": []int{2, 2, 2, 2}}},
	} {
		n, w := nodeOf("Conv", l.a), random(2, l.w...)
		if made, err := prepareConv(n, []*ir.Array{nil, w}, op.NewPool(1)); err != nil || !isPacked(made) {
			t.Errorf("layer %d is not packed: %+v, %v", i, made, err)
		}
		preparedIsBitIdentical(t, fmt.Sprintf("layer %d", i), l, w)
	}
}

func isPacked(p *op.Prepared) bool {
	if p == nil {
		return false
	}
	_, is := p.State.(packedWeights)
	return is
}

// preparedIsBitIdentical compares a convolution with constant weights with that with computed ones, of float32 and of
// Float16.
func preparedIsBitIdentical(t *testing.T, what string, l layer, w *ir.Array) {
	t.Helper()
	x, b, z := random(1, l.x...), random(3, l.w[0]), random(4, layerGeometry(t, l).OutShape()...)
	for _, c := range []struct {
		name string
		more attrs
		in   []*ir.Array
	}{
		{"FusedConv", attrs{"activation": "Relu"}, []*ir.Array{x, w, b, z}},
		{"FusedConv", nil, []*ir.Array{x, w}},
		{"MixedConv", nil, []*ir.Array{as(ir.Float16, x), w, b}},
		{"MixedConv", attrs{"halves": []int{0}}, []*ir.Array{as(ir.Float16, x), w, b}},
	} {
		a := maps.Clone(l.a)
		maps.Copy(a, c.more)
		if want, got := must(t, c.name, 1, a, c.in...),
			prepared(t, c.name, 1, a, c.in...); !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s, %s with %v: not bit-identical to computed weights", what, c.name, c.more)
		}
	}
}

// Sparse weights that are read in each run give the results of those in memory, which Winograd's algorithm would not.
func TestSparseConvOfFixedWeights(t *testing.T) {
	in := []*ir.Array{random(1, 1, 32, 60, 50), random(2, 40, 32, 3, 3)}
	for at := range ir.View[float32](in[1]) {
		if at%6 > 0 {
			ir.View[float32](in[1])[at] = 0
		}
	}
	a := attrs{"pads": []int{1, 1, 1, 1}}
	fixed, err := optest.RunRow(rowOf("Conv", 22),
		optest.Case{Type: "Conv", Version: 22, In: in, Attrs: a.List(), Fixed: []int{1}, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := prepared(t, "Conv", 22, a, in...); !bytes.Equal(got.Data, fixed[0].Data) {
		t.Error("not bit-identical to weights in memory")
	}
}

// The choice is that of the measurements at winogradPays.
func TestWinogradPaysOffForManyChannels(t *testing.T) {
	for _, c := range []struct {
		inC, outC int
		want      bool
	}{{3, 64, false}, {12, 16, false}, {8, 16, false}, {8, 64, true}, {16, 16, true}, {24, 24, true}, {32, 4, false},
		{32, 16, true}, {64, 8, true}} {
		if got := winogradPays(c.inC, c.outC); got != c.want {
			t.Errorf("%d to %d channels: %v, want %v", c.inC, c.outC, got, c.want)
		}
	}
}

// Blocks of parts of an image, and of several images, give the same sums, and so do tasks of fewer channels for more
// workers.
func TestWinogradBlocks(t *testing.T) {
	for _, c := range []struct {
		x                     []int64
		workers, blocks, slab int
	}{
		{[]int64{1, 70, 18, 25}, 1, 2, 64},
		{[]int64{1, 70, 18, 25}, 8, 5, 16},
		{[]int64{3, 70, 7, 9}, 1, 1, 64},
		{[]int64{1, 70, 3, 401}, 1, 6, 64},
	} {
		l := layer{c.x, []int64{130, 70, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}}
		plan := winogradOf(layerGeometry(t, l), nil, c.workers)
		if plan.blocks() != c.blocks || plan.slab != c.slab {
			t.Errorf("%v, %d workers: got %d blocks and %d channels, want %d and %d", c.x, c.workers, plan.blocks(),
				plan.slab, c.blocks, c.slab)
		}
		prepared(t, "FusedConv", 1, l.a, random(1, l.x...), random(2, l.w...))
	}
}

// Windows over few channels are bit-identical to the product with the patches, which computed weights have.
func TestDenseWindows(t *testing.T) {
	for _, a := range []attrs{
		{"pads": []int{1, 1, 1, 1}, "strides": []int{2, 2}},
		{"pads": []int{3, 0, 0, 9}, "strides": []int{1, 3}},
		{"dilations": []int{2, 3}, "pads": []int{0, 4, 2, 1}},
	} {
		for _, channels := range []int64{16, 24, 49} {
			x, w, bias := random(1, 2, 5, 19, 27), random(2, channels, 5, 3, 3), random(3, channels)
			for _, in := range [][]*ir.Array{{x, w, bias}, {x, w}} {
				got, want := prepared(t, "Conv", 11, a, in...), must(t, "Conv", 11, a, in...)
				if !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%v, %d channels: packed and computed weights differ", a, channels)
				}
			}
		}
	}
}
