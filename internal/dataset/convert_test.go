package dataset

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
)

func convert(t testing.TB, a *ir.Array, to ir.DType) (*ir.Array, error) {
	t.Helper()
	c, err := newChange(a.DType, to, nil, Options{Scale: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c.apply(a, nil)
}

// numeric are the types that can be converted to each other.
func numeric() []ir.DType {
	return []ir.DType{ir.Bool, ir.Int8, ir.Uint8, ir.Int16, ir.Uint16, ir.Int32, ir.Uint32, ir.Int64, ir.Uint64,
		ir.Float16, ir.BFloat16, ir.Float, ir.Double}
}

// Every type has 0 and 1, and every conversion preserves them.
func TestConversionsOfZeroAndOne(t *testing.T) {
	bits := []uint8{0, 1, 1, 0, 1}
	for _, from := range numeric() {
		a, err := convert(t, ir.ArrayOf(bits, 5), from)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range numeric() {
			b, err := convert(t, a, to)
			if err != nil {
				t.Fatalf("%s to %s: %v", from, to, err)
			}
			back, err := convert(t, b, ir.Uint8)
			if err != nil || !slices.Equal(back.Data, bits) || b.DType != to {
				t.Errorf("%s to %s: %v, %v", from, to, back, err)
			}
		}
	}
}

// An integer is preserved if the other type can represent it, and else rejected with its position.
func TestIntegersFitOrNot(t *testing.T) {
	holds := map[ir.DType]func(int64) bool{
		ir.Bool:   func(v int64) bool { return v == 0 || v == 1 },
		ir.Int8:   func(v int64) bool { return v == int64(int8(v)) },
		ir.Uint8:  func(v int64) bool { return v == int64(uint8(v)) },
		ir.Int16:  func(v int64) bool { return v == int64(int16(v)) },
		ir.Uint16: func(v int64) bool { return v == int64(uint16(v)) },
		ir.Int32:  func(v int64) bool { return v == int64(int32(v)) },
		ir.Uint32: func(v int64) bool { return v == int64(uint32(v)) },
		ir.Uint64: func(v int64) bool { return v >= 0 },
	}
	edges := []int64{0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 65536, 1<<31 - 1, 1 << 31,
		-1<<31 - 1, 1 << 32, math.MaxInt64, math.MinInt64}
	rapid.Check(t, func(r *rapid.T) {
		v := rapid.OneOf(rapid.SampledFrom(edges), rapid.Int64()).Draw(r, "v")
		for to, fits := range holds {
			b, err := convert(t, ir.ArrayOf([]int64{0, v}, 2), to)
			var m *rangeError
			switch {
			case fits(v) && err == nil:
				if back, err := convert(t, b, ir.Int64); err != nil || ir.View[int64](back)[1] != v {
					r.Errorf("%d through %s: %v, %v", v, to, back, err)
				}
			case fits(v) || !errors.As(err, &m) || m.at != 1:
				r.Errorf("%d to %s: %v", v, to, err)
			}
		}
	})
}

func TestValuesThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		a  *ir.Array
		to ir.DType
	}{
		{ir.ArrayOf([]float64{0.5}, 1), ir.Int64},
		{ir.ArrayOf([]float64{math.NaN()}, 1), ir.Int64},
		{ir.ArrayOf([]float64{math.Inf(1)}, 1), ir.Uint64},
		{ir.ArrayOf([]float64{1 << 63}, 1), ir.Int64},
		{ir.ArrayOf([]float64{1 << 64}, 1), ir.Uint64},
		{ir.ArrayOf([]float64{-1}, 1), ir.Uint64},
		{ir.ArrayOf([]float64{1e39}, 1), ir.Float},
		{ir.ArrayOf([]float32{65520}, 1), ir.Float16},
		{ir.ArrayOf([]float64{-1e39}, 1), ir.BFloat16},
		{ir.ArrayOf([]int32{70000}, 1), ir.Float16},
		{ir.ArrayOf([]uint64{1 << 63}, 1), ir.Int64},
		{ir.ArrayOf([]uint64{1<<64 - 1}, 1), ir.Int8},
		{ir.ArrayOf([]float32{2}, 1), ir.Bool},
	} {
		var m *rangeError
		if b, err := convert(t, tt.a, tt.to); !errors.As(err, &m) {
			t.Errorf("%s to %s: %v, %v", tt.a, tt.to, b, err)
		}
	}
	for _, v := range []float64{-1 << 63, 1<<63 - 1024, 1 << 53} {
		if b, err := convert(t, ir.ArrayOf([]float64{v}, 1), ir.Int64); err != nil || float64(ir.View[int64](b)[0]) != v {
			t.Errorf("%v to int64: %v", v, err)
		}
	}
	if b, err := convert(t, ir.ArrayOf([]float64{math.Inf(-1)}, 1), ir.Float16); err != nil ||
		ir.View[uint16](b)[0] != 0xfc00 {
		t.Errorf("-Inf to float16: %v", err)
	}
}

// A float64 is rounded to the nearest float16, ties to even. Double rounding via float32 would violate this.
func TestDoubleToHalfIsRoundedOnce(t *testing.T) {
	value := func(h uint16) float64 { return float64(float16.Frombits(h).Float32()) }
	check := func(v float64) {
		a, err := convert(t, ir.ArrayOf([]float64{v}, 1), ir.Float16)
		if err != nil {
			t.Fatal(err)
		}
		got := ir.View[uint16](a)[0]
		off := math.Abs(value(got) - v)
		for _, near := range []uint16{got - 1, got + 1} {
			d := math.Abs(value(near) - v)
			if d < off || d == off && got&1 == 1 {
				t.Errorf("%v is %#04x, but %#04x is nearer", v, got, near)
			}
		}
	}
	for h := uint16(0x0001); h < 0x7bff; h += 37 {
		middle := (value(h) + value(h+1)) / 2
		for _, v := range []float64{middle, math.Nextafter(middle, 0), math.Nextafter(middle, 1e9), value(h)} {
			check(v)
		}
	}
}

func TestChannelsOfMeanAndStd(t *testing.T) {
	for _, tt := range []struct {
		row       []int64
		mean, std []float64
		want      []float32 // of elements 0, 1, 2, ...
	}{
		{[]int64{2, 3}, []float64{1}, nil, []float32{-1, 0, 1, 2, 3, 4}},
		{[]int64{2, 3}, []float64{0, 3}, []float64{1, 2}, []float32{0, 1, 2, 0, 0.5, 1}},
		{[]int64{3, 2}, []float64{0, 1}, []float64{2}, []float32{0, 0, 1, 1, 2, 2}},
		{[]int64{6}, nil, []float64{1, 1, 2, 3, 4, 5}, []float32{0, 1, 1, 1, 1, 1}},
	} {
		c, err := newChange(ir.Uint8, ir.Float, tt.row, Options{Scale: 1, Mean: tt.mean, Std: tt.std})
		if err != nil {
			t.Fatal(err)
		}
		// Two samples: channels restart with each.
		a := ir.ArrayOf([]uint8{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, append([]int64{2}, tt.row...)...)
		b, err := c.apply(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.View[float32](b); !slices.Equal(got[:6], tt.want) || !slices.Equal(got[6:], tt.want) {
			t.Errorf("%v: %v, want twice %v", tt.row, got, tt.want)
		}
	}
	_, err := newChange(ir.Uint8, ir.Float, []int64{4, 5}, Options{Scale: 1, Mean: []float64{1, 2, 3}})
	requireError(t, err, "3 items", "[4 5]", "channels")
	_, err = newChange(ir.Uint8, ir.Float, []int64{2}, Options{Scale: 1, Mean: []float64{1, 2}, Std: []float64{1, 2, 3}})
	requireError(t, err, "mean has 2 items and std 3")
}

func TestUnsupportedConversions(t *testing.T) {
	for _, pair := range [][2]ir.DType{{ir.String, ir.Float}, {ir.Float, ir.String}, {ir.Int8, ir.Int4},
		{ir.Complex64, ir.Float}, {ir.Float, ir.Float8E4M3FN}} {
		_, err := newChange(pair[0], pair[1], nil, Options{Scale: 1})
		requireError(t, err, pair[0].String(), pair[1].String(), "give data of that type")
	}
}
