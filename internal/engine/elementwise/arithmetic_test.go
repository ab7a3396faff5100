package elementwise

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// run computes output 0 or fails the test.
func run(t *testing.T, typ string, version int64, in []*ir.Array, attrs ...*ir.Attr) *ir.Array {
	t.Helper()
	out, err := optest.Run(Ops(), optest.Case{Type: typ, Version: version, In: in, Attrs: attrs})
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return out[0]
}

func arrays(a ...*ir.Array) []*ir.Array { return a }

// cast is a as another type, by Cast itself.
func cast(t *testing.T, a *ir.Array, to ir.DType) *ir.Array {
	t.Helper()
	return run(t, "Cast", 28, arrays(a), ir.IntAttr("to", int64(to)))
}

// floats are a's elements.
func floats(t *testing.T, a *ir.Array) []float64 {
	t.Helper()
	return ir.View[float64](cast(t, a, ir.Double))
}

func same(a, b float64) bool { return a == b || a != a && b != b }

func check(t *testing.T, what string, got *ir.Array, want ...float64) {
	t.Helper()
	if g := floats(t, got); !slices.EqualFunc(g, want, same) {
		t.Errorf("%s: got %v, want %v", what, g, want)
	}
}

// Every type and broadcast pattern against the definition, element by element.
func TestAddBroadcasts(t *testing.T) {
	shapes := []struct{ a, b, out []int64 }{
		{[]int64{}, []int64{}, []int64{}},
		{[]int64{3, 4}, []int64{}, []int64{3, 4}},
		{[]int64{0, 4}, []int64{1, 4}, []int64{0, 4}},
		{[]int64{3, 5000}, []int64{3, 1}, []int64{3, 5000}},
		{[]int64{5000}, []int64{3, 1}, []int64{3, 5000}},
		{[]int64{3000, 3}, []int64{3}, []int64{3000, 3}},
		{[]int64{3000, 1}, []int64{3000, 3}, []int64{3000, 3}},
		{[]int64{2, 1, 3, 1}, []int64{4, 1, 5}, []int64{2, 4, 3, 5}},
	}
	for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Int64, ir.Uint16} {
		for _, c := range shapes {
			a, b := counting(t, dt, c.a), counting(t, dt, c.b)
			got := run(t, "Add", 14, arrays(a, b))
			if !slices.Equal(got.Shape, c.out) {
				t.Errorf("%v and %v: shape %v, want %v", c.a, c.b, got.Shape, c.out)
			}
			want := make([]float64, got.Elems())
			for k, in := range []*ir.Array{a, b} {
				x := floats(t, in)
				w := block.Broadcast(c.out, [][]int64{c.a, c.b}[k])
				for i := range want {
					want[i] += x[w.Offset(0, i)]
				}
			}
			if g := floats(t, got); !slices.Equal(g, want) {
				t.Errorf("%s %v and %v: %v, want %v", dt, c.a, c.b, g[:min(9, len(g))], want[:min(9, len(want))])
			}
		}
	}
}

// counting holds small integers, which all types can represent.
func counting(t *testing.T, dt ir.DType, shape []int64) *ir.Array {
	a := ir.NewArray(ir.Int8, shape...)
	for i := range a.Data {
		a.Data[i] = byte(i * 7 % 11)
	}
	return cast(t, a, dt)
}

func TestIntegersWrapAndTruncate(t *testing.T) {
	i8 := optest.Array[int8]
	for _, c := range []struct {
		op      string
		version int64
		a, b    *ir.Array
		want    []float64
		attrs   []*ir.Attr
	}{
		{"Add", 14, i8(127, -128), i8(1, -1), []float64{-128, 127}, nil},
		{"Mul", 14, optest.Array[uint8](200), optest.Array[uint8](2), []float64{144}, nil},
		{"Div", 14, i8(7, -7, 7, -128, 5), i8(2, 2, -2, -1, 0), []float64{3, -3, -3, -128, 0}, nil},
		{"Mod", 13, i8(7, -7, 7, -7, 5), i8(3, 3, -3, -3, 0), []float64{1, 2, -2, -1, 0}, nil},
		{"Mod", 13, i8(7, -7, 7, -7), i8(3, 3, -3, -3), []float64{1, -1, 1, -1}, []*ir.Attr{ir.IntAttr("fmod", 1)}},
		{"BitShift", 28, i8(-5, 5, -5, 5, -1), i8(1, 1, 9, -1, -1), []float64{-3, 2, -1, 0, -1},
			[]*ir.Attr{ir.StringAttr("direction", "RIGHT")}},
		{"BitShift", 28, i8(-5, 65, 1), i8(1, 1, 8), []float64{-10, -126, 0},
			[]*ir.Attr{ir.StringAttr("direction", "LEFT")}},
		{"Pow", 15, optest.Array[int32](2, 3, -2, 1, -1, 2), optest.Array[int32](31, 4, 3, -5, -3, -1),
			[]float64{math.MinInt32, 81, -8, 1, -1, 0}, nil},
		{"Pow", 15, optest.Array[int32](4, 9), optest.Array[float32](0.5, 1.5), []float64{2, 27}, nil},
	} {
		check(t, c.op, run(t, c.op, c.version, arrays(c.a, c.b), c.attrs...), c.want...)
	}
}

// The special cases that the specification of Mod lists for floats.
func TestModOfFloats(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	x := optest.Array(zero, 0, inf, 5, 5, -5, 5, nan, -5.5)
	y := optest.Array(3, -3, 3, 0, inf, inf, -inf, 2, 3)
	floor := run(t, "Mod", 28, arrays(x, y))
	check(t, "floor", floor, 0, zero, nan, nan, 5, inf, -inf, nan, 0.5)
	if s := ir.View[float64](floor); math.Signbit(s[0]) || !math.Signbit(s[1]) {
		t.Errorf("zeros %v and %v do not have the sign of the divisor", s[0], s[1])
	}
	check(t, "truncated", run(t, "Mod", 28, arrays(x, y), ir.IntAttr("fmod", 1)), zero, 0, nan, nan, 5, -5, 5, nan,
		-2.5)
}

func TestMaxAndMinPropagateNaN(t *testing.T) {
	nan := float32(math.NaN())
	x, y := optest.Array(nan, 1, 2), optest.Array(1, nan, 3)
	check(t, "Max", run(t, "Max", 13, arrays(x, y)), math.NaN(), math.NaN(), 3)
	check(t, "Min", run(t, "Min", 13, arrays(x, y)), math.NaN(), math.NaN(), 2)
}

// The output may reuse the memory of x, which occurs twice among the inputs.
func TestVariadicInPlaceWithRepeatedInput(t *testing.T) {
	x, y := optest.Array[float32](1, 2), optest.Array[float32](10, 20)
	out, err := optest.Run(Ops(), optest.Case{Type: "Sum", Version: 13, In: arrays(x, y, x), InPlace: 1})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "Sum", out[0], 12, 24)
	check(t, "Mean", run(t, "Mean", 13, arrays(optest.Array[float32](1, 2), optest.Scalar[float32](4), y)), 5,
		float64(float32(26)/3))
}

func TestPowOfMixedTypes(t *testing.T) {
	half := cast(t, optest.Array[float32](1, 2, 3), ir.Float16)
	for _, exponent := range []*ir.Array{
		optest.Scalar[int64](2), optest.Scalar[uint8](2), optest.Scalar[float64](2), optest.Scalar[float32](2),
		cast(t, optest.Scalar[float32](2), ir.BFloat16),
	} {
		got := run(t, "Pow", 15, arrays(half, exponent))
		if got.DType != ir.Float16 {
			t.Errorf("with %s: %s, want the type of the base", exponent, got)
		}
		check(t, "Pow", got, 1, 4, 9)
		check(t, "Pow", run(t, "Pow", 15, arrays(optest.Array[int64](1, 2, 3), exponent)), 1, 4, 9)
	}
}

func TestSinglePowIsRounded(t *testing.T) {
	for _, a := range []float32{1e-30, 0.1, 0.999, 1, 1.5, 77, 1e30, 0, -2, -2.5, float32(math.Inf(1))} {
		for _, b := range []float32{-7.5, -2, -0.5, 0, 0.1, 1, 2, 3, 11.25, float32(math.NaN()),
			float32(math.Inf(-1))} {
			if got, want := singlePow(a, b), float32(math.Pow(float64(a), float64(b))); !same(float64(got),
				float64(want)) {
				t.Errorf("%v to the power %v: %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestComparisons(t *testing.T) {
	nan := math.NaN()
	x, y := optest.Array(1, 2, 3, nan), optest.Array(2, 2, 2, nan)
	for op, want := range map[string][]bool{
		"Equal": {false, true, false, false}, "Less": {true, false, false, false},
		"LessOrEqual": {true, true, false, false},
		"Greater":     {false, false, true, false}, "GreaterOrEqual": {false, true, true, false},
	} {
		if got := ir.View[bool](run(t, op, 16, arrays(x, y))); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", op, got, want)
		}
	}
	text := run(t, "Equal", 19, arrays(ir.TextOf([]string{"a", "b"}, 2, 1), ir.TextOf([]string{"b", "c", "a"}, 3)))
	if got := ir.View[bool](text); !slices.Equal(got, []bool{false, false, true, true, false, false}) {
		t.Errorf("strings: %v", got)
	}
}

func TestWhereOfEveryWidth(t *testing.T) {
	cond := ir.ArrayOf([]bool{true, false, true}, 3)
	for _, dt := range []ir.DType{ir.Bool, ir.Uint8, ir.Float16, ir.Float, ir.Int64, ir.Double} {
		one, zero := cast(t, optest.Scalar[int8](1), dt), cast(t, ir.ArrayOf([]int8{0, 0, 0, 1, 1, 1}, 2, 3), dt)
		check(t, dt.String(), run(t, "Where", 16, arrays(cond, one, zero)), 1, 0, 1, 1, 1, 1)
	}
	wide := run(t, "Where", 16, arrays(cond, ir.ArrayOf([]complex128{1, 2, 3}, 3), ir.ArrayOf([]complex128{4i}, 1)))
	if got := ir.View[complex128](wide); !slices.Equal(got, []complex128{1, 4i, 3}) {
		t.Errorf("complex: %v", got)
	}
	text := run(t, "Where", 16, arrays(cond, ir.TextOf([]string{"x"}, 1), ir.TextOf([]string{"a", "b", "c"}, 3)))
	if !slices.Equal(text.Text, []string{"x", "b", "x"}) {
		t.Errorf("strings: %q", text.Text)
	}
}
