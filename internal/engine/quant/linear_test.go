package quant

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/ir"
)

// granularities are shapes of scales for an input of 3×8×10, by attributes.
func granularities() []struct {
	a     attrs
	shape []int64
} {
	return []struct {
		a     attrs
		shape []int64
	}{
		{nil, nil},
		{attrs{"axis": 1}, []int64{8}},
		{attrs{"axis": -1}, []int64{10}},
		{attrs{"axis": 0}, []int64{3}},
		{attrs{"axis": 2, "block_size": 4}, []int64{3, 8, 3}},
		{attrs{"axis": 1, "block_size": 3}, []int64{3, 3, 10}},
	}
}

// scaleOf is the index of the scale of element i of 3×8×10.
func scaleOf(a attrs, i int) int {
	sizes := []int{3, 8, 10}
	place := []int{i / 80, i / 10 % 8, i % 10}
	axis, _ := a["axis"].(int)
	axis = (axis + 3) % 3
	block, blocked := a["block_size"].(int)
	if !blocked {
		return place[axis]
	}
	place[axis] /= block
	sizes[axis] = (sizes[axis] + block - 1) / block
	return (place[0]*sizes[1]+place[1])*sizes[2] + place[2]
}

func TestQuantizeLinearOfEveryTypeAndGranularity(t *testing.T) {
	x := random(1, 3, 8, 10)
	for dt := range ranges {
		for _, g := range granularities() {
			s, z := scale(2, g.shape...), quantizedValues(3, dt, g.shape...)
			got := wholes(t, must(t, "QuantizeLinear", g.a, x, s, z))
			zeros := wholes(t, z)
			for i, v := range ir.View[float32](x) {
				j := 0
				if g.shape != nil {
					j = scaleOf(g.a, i)
				}
				quotient := v / ir.View[float32](s)[j]
				if want := clamp(math.RoundToEven(float64(quotient))+float64(zeros[j]), dt); got[i] != want {
					t.Fatalf("%s, %v: element %d is %d, want %d", dt, g.a, i, got[i], want)
				}
			}
		}
	}
}

func TestDequantizeLinearOfEveryTypeAndGranularity(t *testing.T) {
	for _, dt := range []ir.DType{ir.Int8, ir.Uint8, ir.Int16, ir.Uint16, ir.Int4, ir.Uint4, ir.Int2, ir.Uint2} {
		x := quantizedValues(1, dt, 3, 8, 10)
		for _, g := range granularities() {
			s, z := scale(2, g.shape...), quantizedValues(3, dt, g.shape...)
			got := ir.View[float32](must(t, "DequantizeLinear", g.a, x, s, z))
			zeros := wholes(t, z)
			for i, q := range wholes(t, x) {
				j := 0
				if g.shape != nil {
					j = scaleOf(g.a, i)
				}
				if want := float32(q-zeros[j]) * ir.View[float32](s)[j]; got[i] != want {
					t.Fatalf("%s, %v: element %d is %v, want %v", dt, g.a, i, got[i], want)
				}
			}
		}
	}
}

func TestQuantizeLinearSaturates(t *testing.T) {
	x := ir.ArrayOf([]float32{float32(math.Inf(1)), 1e30, 2.5, 3.5, -2.5, -1e30, float32(math.Inf(-1))}, 7)
	for dt, want := range map[ir.DType][]int32{
		ir.Int8:  {127, 127, 2, 4, -2, -128, -128},
		ir.Uint8: {255, 255, 2, 4, 0, 0, 0},
		ir.Int16: {32767, 32767, 2, 4, -2, -32768, -32768},
		ir.Int4:  {7, 7, 2, 4, -2, -8, -8},
		ir.Uint2: {3, 3, 2, 3, 0, 0, 0},
	} {
		if got := wholes(t, must(t, "QuantizeLinear", attrs{"output_dtype": int(dt)}, x, one(1))); !slices.Equal(got,
			want) {
			t.Errorf("%s: got %v, want %v", dt, got, want)
		}
	}
}

func TestQuantizeToFloat8AndFloat4(t *testing.T) {
	x := ir.ArrayOf([]float32{0, 1, -3, 1000, 0.25}, 5)
	for dt, want := range map[ir.DType][]float32{
		ir.Float8E4M3FN:   {0, 0.5, -1.5, 448, 0.125},
		ir.Float8E5M2:     {0, 0.5, -1.5, 512, 0.125},
		ir.Float8E4M3FNUZ: {0, 0.5, -1.5, 240, 0.125},
		ir.Float4E2M1:     {0, 0.5, -1.5, 6, 0},
		ir.Float6E2M3:     {0, 0.5, -1.5, 7.5, 0.125},
	} {
		y := must(t, "QuantizeLinear", attrs{"output_dtype": int(dt)}, x, one(2))
		got := make([]float32, 5)
		narrow.DecodeFloats(got, y.Data, dt)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", dt, got, want)
		}
		for i := range want {
			want[i] *= 2
		}
		if back := ir.View[float32](must(t, "DequantizeLinear", nil, y, one(2))); !slices.Equal(back, want) {
			t.Errorf("%s: got %v back, want %v", dt, back, want)
		}
	}
}

// The quotient has the type of the scale, unless precision is set.
func TestPrecisionOfTheQuotient(t *testing.T) {
	// 2049 is halfway between two float16 and becomes 2048, and 2049/2 is 1024.5.
	x, s := ir.ArrayOf([]float32{2049}, 1), one(2)
	sixteen := attrs{"output_dtype": int(ir.Int16)}
	both := attrs{"output_dtype": int(ir.Int16), "precision": int(ir.Float16)}
	for _, c := range []struct {
		a     attrs
		scale *ir.Array
		x     float32
		want  int32
	}{
		{sixteen, s, 2051, 1026}, // 1025.5 to even
		{both, s, 2051, 1026},    // 2052/2
		{sixteen, s, 2049, 1024},
		{sixteen, half(s), 2053, 1026}, // 2052/2, not 1026.5
		{both, s, 4098, 2048},          // 4096/2, not 2049
	} {
		ir.View[float32](x)[0] = c.x
		if got := wholes(t, must(t, "QuantizeLinear", c.a, x, c.scale))[0]; got != c.want {
			t.Errorf("%v/%s with %v: got %d, want %d", c.x, c.scale, c.a, got, c.want)
		}
	}
}

func TestDequantizeLinearToHalves(t *testing.T) {
	x, s := quantizedValues(1, ir.Int8, 4, 6), scale(2, 6)
	wide := must(t, "DequantizeLinear", nil, x, s)
	got := must(t, "DequantizeLinear", attrs{"output_dtype": int(ir.Float16)}, x, s)
	if !bytes.Equal(got.Data, half(wide).Data) {
		t.Error("float16 is not float32 rounded once")
	}
	if y := must(t, "DequantizeLinear", nil, x, half(s)); y.DType != ir.Float16 {
		t.Errorf("a float16 scale gives %s", y)
	}
}

func TestDynamicQuantizeLinear(t *testing.T) {
	for _, c := range []struct {
		x     []float32
		scale float32
		zero  byte
	}{
		{[]float32{0, 2, -3, -2.5, 1.34, 0.5}, 5. / 255, 153}, // the specification's example
		{[]float32{-1, -2.1, -1.3, -2.5, -3.34, -4}, 4. / 255, 255},
		{[]float32{1, 2, 3}, 3. / 255, 0},
		{[]float32{0, 0}, 1, 0},
	} {
		x := ir.ArrayOf(c.x, int64(len(c.x)))
		out, err := compute("DynamicQuantizeLinear", nil, 2, 3, []*ir.Array{x})
		if err != nil {
			t.Fatal(err)
		}
		if s, z := ir.View[float32](out[1])[0], out[2].Data[0]; s != c.scale || z != c.zero {
			t.Errorf("%v: scale %v, zero point %d, want %v, %d", c.x, s, z, c.scale, c.zero)
		}
		if want := must(t, "QuantizeLinear", nil, x, out[1], out[2]); !bytes.Equal(out[0].Data, want.Data) {
			t.Errorf("%v: got %v, want %v", c.x, out[0].Data, want.Data)
		}
	}
}

// Runs longer than a chunk.
func TestLongRuns(t *testing.T) {
	x := random(1, 3, 5000)
	for _, g := range []struct {
		a     attrs
		shape []int64
	}{{nil, nil}, {attrs{"axis": 0}, []int64{3}}, {attrs{"axis": 1}, []int64{5000}},
		{attrs{"axis": 1, "block_size": 4096}, []int64{3, 2}}} {
		s := scale(2, g.shape...)
		y := must(t, "QuantizeLinear", g.a, x, s)
		for _, i := range []int{0, 2047, 2048, 4095, 4096, 4999, 5000, 14999} {
			j := 0
			switch fmt.Sprint(g.shape) {
			case "[3]":
				j = i / 5000
			case "[5000]":
				j = i % 5000
			case "[3 2]":
				j = i/5000*2 + i%5000/4096
			}
			quotient := ir.View[float32](x)[i] / ir.View[float32](s)[j]
			if want := clamp(float64(quotient), ir.Uint8); int32(y.Data[i]) != want {
				t.Errorf("%v: element %d is %d, want %d", g.a, i, y.Data[i], want)
			}
		}
	}
}
