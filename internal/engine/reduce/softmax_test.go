package reduce

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// The examples of the specification of CumSum and CumProd.
func TestCumulation(t *testing.T) {
	x, axis := optest.Array[float32](1, 2, 3), optest.Scalar[int32](0)
	for _, c := range []struct {
		op                 string
		exclusive, reverse int64
		want               []float64
	}{
		{"CumSum", 0, 0, []float64{1, 3, 6}}, {"CumSum", 1, 0, []float64{0, 1, 3}},
		{"CumSum", 0, 1, []float64{6, 5, 3}}, {"CumSum", 1, 1, []float64{5, 3, 0}},
		{"CumProd", 0, 0, []float64{1, 2, 6}}, {"CumProd", 1, 0, []float64{1, 1, 2}},
		{"CumProd", 0, 1, []float64{6, 6, 3}}, {"CumProd", 1, 1, []float64{6, 3, 1}},
	} {
		attrs := []*ir.Attr{ir.IntAttr("exclusive", c.exclusive), ir.IntAttr("reverse", c.reverse)}
		check(t, c.op, compute(t, c.op, 26, arrays(x, axis), attrs...), 0, c.want...)
		square := shaped(optest.Array[uint32](1, 9, 2, 9, 3, 9), 3, 2)
		columns := elements(t, compute(t, c.op, 26, arrays(square, axis), attrs...))
		if got := []float64{columns[0], columns[2], columns[4]}; !slices.Equal(got, c.want) {
			t.Errorf("%s of a column: %v, want %v", c.op, got, c.want)
		}
	}
}

// softmaxOf is the formula of the specification.
func softmaxOf(x []float64) []float64 {
	y, sum := make([]float64, len(x)), total(x, math.Exp)
	for i, v := range x {
		y[i] = math.Exp(v) / sum
	}
	return y
}

// column is every element of a tensor with the same index on the last axis.
func column(x []float64, width, at int) []float64 {
	var out []float64
	for i := at; i < len(x); i += width {
		out = append(out, x[i])
	}
	return out
}

func TestSoftmaxAlongAnyAxis(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16} {
		x := cast(t, smooth(5, 1100), dt)
		rows, columns := elements(t, compute(t, "Softmax", 13, arrays(x))),
			elements(t, compute(t, "Softmax", 13, arrays(x), ir.IntAttr("axis", 0)))
		logs := elements(t, compute(t, "LogSoftmax", 13, arrays(x), ir.IntAttr("axis", 0)))
		wide := elements(t, x)
		for _, k := range []int{0, 600, 1099} {
			want := softmaxOf(column(wide, 1100, k))
			for i := range want {
				if got := columns[i*1100+k]; math.Abs(got-want[i]) > 1e-3*want[i] {
					t.Errorf("%s: column %d is %v at %d, want %v", dt, k, got, i, want[i])
				}
				if got := logs[i*1100+k]; math.Abs(got-math.Log(want[i])) > 4e-3 {
					t.Errorf("%s: logarithm %v, want %v", dt, got, math.Log(want[i]))
				}
			}
		}
		if got, want := rows[1100], softmaxOf(wide[1100:2200])[0]; math.Abs(got-want) > 1e-3*want {
			t.Errorf("%s: row 1 is %v, want %v", dt, got, want)
		}
	}
}

// Below opset 13 the axes from attribute axis on are flattened, and axis is 1 by default.
func TestSoftmaxBeforeOpset13(t *testing.T) {
	x := shaped(optest.Array[float32](0, 0, 0, 0, 1, 1, 1, 1), 2, 2, 2)
	quarter := slices.Repeat([]float64{0.25}, 8)
	check(t, "opset 12", compute(t, "Softmax", 12, arrays(x)), 1e-7, quarter...)
	check(t, "opset 13", compute(t, "Softmax", 13, arrays(x), ir.IntAttr("axis", 1)), 1e-7,
		slices.Repeat([]float64{0.5}, 8)...)
	check(t, "Hardmax", compute(t, "Hardmax", 11, arrays(x)), 0, 1, 0, 0, 0, 1, 0, 0, 0)
	check(t, "Hardmax 13", compute(t, "Hardmax", 13, arrays(x)), 0, 1, 0, 1, 0, 1, 0, 1, 0)
}

func TestSoftmaxOfMinusInfinitiesIsNaN(t *testing.T) {
	x := shaped(cast(t, optest.Array(math.Inf(-1), math.Inf(-1), 0, math.Inf(-1)), ir.Float), 2, 2)
	nan := math.NaN()
	check(t, "rows", compute(t, "Softmax", 13, arrays(x)), 0, nan, nan, 1, 0)
	check(t, "columns", compute(t, "Softmax", 13, arrays(x), ir.IntAttr("axis", 0)), 0, 0, nan, 1, nan)
}

func TestArgPrefersTheFirstAndNaN(t *testing.T) {
	nan := float32(math.NaN())
	x := shaped(optest.Array[float32](1, 3, 3, nan, 1, nan), 2, 3)
	last := ir.IntAttr("select_last_index", 1)
	axis := ir.IntAttr("axis", 1)
	check(t, "max", compute(t, "ArgMax", 13, arrays(x), axis), 0, 1, 0)
	check(t, "last max", compute(t, "ArgMax", 13, arrays(x), axis, last), 0, 2, 2)
	check(t, "min", compute(t, "ArgMin", 13, arrays(x), axis), 0, 0, 0)
	check(t, "columns", compute(t, "ArgMax", 13, arrays(shaped(optest.Array[int8](1, 5, 2, 4), 2, 2))), 0, 1, 0)
	if got := compute(t, "ArgMax", 13, arrays(x), axis, ir.IntAttr("keepdims", 0)); !slices.Equal(got.Shape,
		[]int64{2}) {
		t.Errorf("shape %v", got.Shape)
	}
}

func TestTopKIsStable(t *testing.T) {
	x := optest.Array[float32](2, 7, float32(math.NaN()), 7, 1, 7)
	for _, c := range []struct {
		largest int64
		k       int64
		values  []float64
		indices []float64
	}{
		{1, 3, []float64{math.NaN(), 7, 7}, []float64{2, 1, 3}},
		{0, 4, []float64{1, 2, 7, 7}, []float64{4, 0, 1, 3}},
		{1, 0, nil, nil},
		{0, 6, []float64{1, 2, 7, 7, 7, math.NaN()}, []float64{4, 0, 1, 3, 5, 2}},
	} {
		out := results(t, optest.Case{Type: "TopK", Version: 11, In: arrays(x, optest.Array(c.k)), Outputs: 2,
			Attrs: []*ir.Attr{ir.IntAttr("largest", c.largest)}})
		check(t, "values", out[0], 0, c.values...)
		check(t, "indices", out[1], 0, c.indices...)
	}
	old := results(t, optest.Case{Type: "TopK", Version: 9, In: arrays(x), Outputs: 2,
		Attrs: []*ir.Attr{ir.IntAttr("k", 2)}})
	check(t, "opset 9", old[1], 0, 2, 1)
}

func TestTopKIsAPrefixOfTheOrder(t *testing.T) {
	x := random(t, ir.Int32, 40, 300)
	all := results(t, optest.Case{Type: "TopK", Version: 11, In: arrays(x, optest.Array[int64](40)), Outputs: 2,
		Attrs: []*ir.Attr{ir.IntAttr("axis", 0)}})
	some := results(t, optest.Case{Type: "TopK", Version: 11, In: arrays(x, optest.Array[int64](7)), Outputs: 2,
		Attrs: []*ir.Attr{ir.IntAttr("axis", 0)}})
	for k := range all {
		if !slices.Equal(elements(t, some[k]), elements(t, all[k])[:7*300]) {
			t.Errorf("output %d for k = 7 is not a prefix of that for k = 40", k)
		}
	}
}

// The examples of the specification of Unique.
func TestUnique(t *testing.T) {
	flat := optest.Array[float32](2, 1, 1, 3, 4, 3)
	rows := shaped(optest.Array[float32](1, 0, 0, 1, 0, 0, 2, 3, 4), 3, 3)
	cube := shaped(optest.Array[float32](1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1), 2, 4, 2)
	for _, c := range []struct {
		x     *ir.Array
		attrs []*ir.Attr
		want  [4][]float64
	}{
		{flat, []*ir.Attr{ir.IntAttr("sorted", 0)},
			[4][]float64{{2, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1}}},
		{rows, []*ir.Attr{ir.IntAttr("axis", 0)}, [4][]float64{{1, 0, 0, 2, 3, 4}, {0, 2}, {0, 0, 1}, {2, 1}}},
		{cube, []*ir.Attr{ir.IntAttr("axis", 1)}, [4][]float64{{0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}, {1, 0, 2},
			{1, 0, 2, 0}, {2, 1, 1}}},
		{optest.Array(math.NaN(), 1, math.NaN()), nil, [4][]float64{{1, math.NaN()}, {1, 0}, {1, 0, 1}, {1, 2}}},
	} {
		out := results(t, optest.Case{Type: "Unique", Version: 11, In: arrays(c.x), Outputs: 4, Attrs: c.attrs})
		for k, want := range c.want {
			check(t, "Unique", out[k], 0, want...)
		}
	}
	text := compute(t, "Unique", 11, arrays(ir.TextOf([]string{"b", "a", "b"}, 3)))
	if !slices.Equal(text.Text, []string{"a", "b"}) {
		t.Errorf("strings: %q", text.Text)
	}
}

func TestNonZero(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	x := shaped(optest.Array(1, zero, float32(math.NaN()), 0, 2, 0), 2, 3)
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16} {
		got := compute(t, "NonZero", 13, arrays(cast(t, x, dt)))
		check(t, dt.String(), got, 0, 0, 0, 1, 0, 2, 1)
		if !slices.Equal(got.Shape, []int64{2, 3}) {
			t.Errorf("shape %v", got.Shape)
		}
	}
	check(t, "strings", compute(t, "NonZero", 13, arrays(ir.TextOf([]string{"", "x"}, 2))), 0, 1)
	check(t, "int16", compute(t, "NonZero", 13, arrays(optest.Array[int16](math.MinInt16, 0))), 0, 0)
}
