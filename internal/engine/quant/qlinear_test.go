package quant

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// number is a dequantized value.
func number(q, zero int32, scale float32) float32 { return float32(q-zero) * scale }

func TestQLinearAddAndMulBroadcast(t *testing.T) {
	for _, dt := range []ir.DType{ir.Uint8, ir.Int8} {
		a, b := quantizedValues(1, dt, 4, 1, 7), quantizedValues(2, dt, 3, 7)
		za, zb, zc := quantizedValues(3, dt, 1), quantizedValues(4, dt, 1), quantizedValues(5, dt, 1)
		in := []*ir.Array{a, one(0.25), za, b, one(0.5), zb, one(2), zc}
		sum, product := must(t, "QLinearAdd", nil, in...), must(t, "QLinearMul", nil, in...)
		if !slices.Equal(sum.Shape, []int64{4, 3, 7}) {
			t.Fatalf("got %s", sum)
		}
		x, y, z := wholes(t, a), wholes(t, b), float64(wholes(t, zc)[0])
		for i, got := range wholes(t, sum) {
			u := number(x[i/21*7+i%7], wholes(t, za)[0], 0.25)
			v := number(y[i%21], wholes(t, zb)[0], 0.5)
			// With these scales nothing is rounded before the last step, which includes the zero point.
			if want := clamp(float64((u+v)/2)+z, dt); got != want {
				t.Fatalf("%s: %v+%v is %d, want %d", dt, u, v, got, want)
			}
			if got, want := wholes(t, product)[i], clamp(float64(u*v/2)+z, dt); got != want {
				t.Fatalf("%s: %v·%v is %d, want %d", dt, u, v, got, want)
			}
		}
	}
}

func TestQLinearFunctions(t *testing.T) {
	all := ir.NewArray(ir.Uint8, 256)
	for i := range all.Data {
		all.Data[i] = byte(i)
	}
	zero := ir.ArrayOf([]uint8{100})
	leaky := wholes(t, must(t, "QLinearLeakyRelu", attrs{"alpha": 0.25}, all, one(0.5), zero, one(0.125), zero))
	sigmoid := wholes(t, must(t, "QLinearSigmoid", nil, all, one(0.0625), zero, one(1./256), ir.ArrayOf([]uint8{0})))
	for i := range 256 {
		v := float64(i-100) * 0.5
		if v < 0 {
			v /= 4
		}
		if want := clamp(math.RoundToEven(v/0.125)+100, ir.Uint8); leaky[i] != want {
			t.Fatalf("QLinearLeakyRelu of %d is %d, want %d", i, leaky[i], want)
		}
		s := 256 / (1 + math.Exp(-float64(i-100)*0.0625))
		if got := float64(sigmoid[i]); math.Abs(got-min(s, 255)) > 0.5001 {
			t.Fatalf("QLinearSigmoid of %d is %v, want %v rounded", i, got, s)
		}
	}
}

func TestQLinearConcatRequantizes(t *testing.T) {
	a, b := quantizedValues(1, ir.Int8, 2, 3), quantizedValues(2, ir.Int8, 2, 2)
	zero, other := ir.ArrayOf([]int8{5}), ir.ArrayOf([]int8{-20})
	got := must(t, "QLinearConcat", attrs{"axis": -1}, one(0.5), zero, a, one(0.5), zero, b, one(0.25), other)
	if !slices.Equal(got.Shape, []int64{2, 5}) {
		t.Fatalf("got %s", got)
	}
	x, y := wholes(t, a), wholes(t, b)
	for i, q := range wholes(t, got) {
		row, col := i/5, i%5
		if col < 3 {
			if q != x[row*3+col] {
				t.Errorf("element %d changed from %d to %d", i, x[row*3+col], q)
			}
			continue
		}
		v := float64(y[row*2+col-3]+20) * 0.25
		if want := clamp(math.RoundToEven(v/0.5)+5, ir.Int8); q != want {
			t.Errorf("element %d is %d, want %d", i, q, want)
		}
	}
}

func TestQLinearPools(t *testing.T) {
	x := quantizedValues(1, ir.Uint8, 2, 3, 4, 4)
	last := ir.NewArray(ir.Uint8, 2, 4, 4, 3)
	for i := range last.Data {
		last.Data[i] = x.Data[i/48*48+i%3*16+i/3%16]
	}
	in, out := ir.ArrayOf([]uint8{7}), ir.ArrayOf([]uint8{30})
	for _, c := range []struct {
		name string
		a    attrs
		size int // of the output, along each axis
	}{
		{"QLinearGlobalAveragePool", attrs{}, 1},
		{"QLinearAveragePool", attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, 2},
	} {
		c.a["channels_last"] = 0
		first := wholes(t, must(t, c.name, c.a, x, one(0.5), in, one(0.25), out))
		c.a["channels_last"] = 1
		second := wholes(t, must(t, c.name, c.a, last, one(0.5), in, one(0.25), out))
		window := 4 / c.size
		for i, got := range first {
			channel, place := i/(c.size*c.size), i%(c.size*c.size)
			sum := int32(0)
			for k := range window * window {
				row, col := place/c.size*window+k/window, place%c.size*window+k%window
				sum += int32(x.Data[channel*16+row*4+col]) - 7
			}
			if want := clamp(float64(sum)/float64(window*window)*2+30, ir.Uint8); got != want {
				t.Errorf("%s: element %d is %d, want %d", c.name, i, got, want)
			}
			image, own := channel/3, channel%3
			if other := second[(image*c.size*c.size+place)*3+own]; other != got {
				t.Errorf("%s: element %d is %d channels-last, and %d channels-first", c.name, i, other, got)
			}
		}
	}
}
