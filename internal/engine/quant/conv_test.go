package quant

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// layers are shapes of x and w, and attributes, that the plain definition supports: two spatial axes.
func layers() []struct {
	x, w []int64
	a    attrs
} {
	return []struct {
		x, w []int64
		a    attrs
	}{
		{[]int64{2, 4, 9, 21}, []int64{6, 4, 3, 3}, attrs{"pads": []int{1, 1, 1, 1}}},
		{[]int64{1, 4, 9, 11}, []int64{6, 2, 3, 2},
			attrs{"group": 2, "strides": []int{2, 1}, "pads": []int{0, 1, 2, 0}}},
		{[]int64{1, 20, 7, 7}, []int64{18, 20, 1, 1}, attrs{}},
		{[]int64{1, 3, 14, 70}, []int64{6, 1, 3, 3},
			attrs{"group": 3, "pads": []int{1, 0, 0, 1}, "strides": []int{1, 2}}},
		{[]int64{1, 2, 9, 9}, []int64{3, 2, 3, 3}, attrs{"dilations": []int{2, 3}}},
	}
}

func TestConvIntegerEqualsTheDefinition(t *testing.T) {
	for i, l := range layers() {
		for _, types := range [][2]ir.DType{{ir.Uint8, ir.Int8}, {ir.Int8, ir.Uint8}} {
			x, w := quantizedValues(1, types[0], l.x...), quantizedValues(2, types[1], l.w...)
			xz, wz := quantizedValues(3, types[0], 1), quantizedValues(4, types[1], l.w[0])
			got := must(t, "ConvInteger", l.a, x, w, xz, wz)
			if want := windows(t, l.a, got.Shape, x, w, xz, wz); !slices.Equal(ir.View[int32](got), want) {
				t.Errorf("layer %d of %v: got %v, want %v", i, types, ir.View[int32](got), want)
			}
		}
	}
}

// windows sums over the window of every element of the output.
func windows(t *testing.T, a attrs, shape []int64, xa, wa, xz, wz *ir.Array) []int32 {
	t.Helper()
	x, w, zx, zw := wholes(t, xa), wholes(t, wa), wholes(t, xz)[0], wholes(t, wz)
	get := func(name string, i, def int) int {
		if list, ok := a[name].([]int); ok {
			return list[i]
		}
		return def
	}
	group, _ := a["group"].(int)
	group = max(group, 1)
	m, c, kh, kw := int(wa.Shape[0]), int(wa.Shape[1]), int(wa.Shape[2]), int(wa.Shape[3])
	h, wide := int(xa.Shape[2]), int(xa.Shape[3])
	oh, ow := int(shape[2]), int(shape[3])
	y := make([]int32, int(shape[0])*m*oh*ow)
	for i := range y {
		col, row, out, image := i%ow, i/ow%oh, i/ow/oh%m, i/ow/oh/m
		for k := range c * kh * kw {
			in := image*c*group + out/(m/group)*c + k/(kh*kw)
			r := row*get("strides", 0, 1) - get("pads", 0, 0) + k/kw%kh*get("dilations", 0, 1)
			s := col*get("strides", 1, 1) - get("pads", 1, 0) + k%kw*get("dilations", 1, 1)
			if r >= 0 && r < h && s >= 0 && s < wide {
				y[i] += (x[(in*h+r)*wide+s] - zx) * (w[out*c*kh*kw+k] - at(zw, out))
			}
		}
	}
	return y
}

func TestQLinearConvEqualsRequantizedConvInteger(t *testing.T) {
	for i, l := range layers() {
		for _, dt := range []ir.DType{ir.Uint8, ir.Int8} {
			x, w := quantizedValues(1, ir.Uint8, l.x...), quantizedValues(2, ir.Int8, l.w...)
			xz, wz, yz := quantizedValues(3, ir.Uint8, 1), quantizedValues(4, ir.Int8, 1), quantizedValues(5, dt, 1)
			m := l.w[0]
			ws, bias := scale(6, m), ir.NewArray(ir.Int32, m)
			for j := range m {
				ir.View[int32](bias)[j] = int32(j*3000 - 9000)
			}
			sum := must(t, "ConvInteger", l.a, x, w, xz, wz)
			got := wholes(t, must(t, "QLinearConv", l.a, x, one(0.02), xz, w, ws, wz, one(1.5), yz, bias))
			area := int(sum.Shape[2] * sum.Shape[3])
			for j, v := range ir.View[int32](sum) {
				channel := j / area % int(m)
				s := 0.02 * ir.View[float32](ws)[channel] / 1.5
				rounded := math.RoundToEven(float64(float32(v+ir.View[int32](bias)[channel]) * s))
				if want := clamp(rounded+float64(wholes(t, yz)[0]), dt); got[j] != want {
					t.Fatalf("layer %d to %s: element %d is %d, want %d", i, dt, j, got[j], want)
				}
			}
		}
	}
}
