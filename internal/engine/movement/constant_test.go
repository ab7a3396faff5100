package movement

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func f32(xs ...float32) *ir.Array { return ir.ArrayOf(xs, int64(len(xs))) }

// numbers are xs as a numeric type.
func numbers(dt ir.DType, xs ...float64) *ir.Array {
	a := ir.NewArray(dt, int64(len(xs)))
	number.Write(a, 0, xs)
	return a
}

// lone is a scalar.
func lone(dt ir.DType, x float64) *ir.Array {
	a := numbers(dt, x)
	a.Shape = nil
	return a
}

func TestConstants(t *testing.T) {
	check(t, []example{
		{"Constant", 12, attrs(&ir.Attr{Name: "value_float", F: 2}), nil, lone(ir.Float, 2)},
		{"Constant", 12, attrs(&ir.Attr{Name: "value_floats", Floats: []float32{2, 3}}), nil, f32(2, 3)},
		{"Constant", 12, attrs(num("value_int", 4)), nil, scalarOf(4)},
		{"Constant", 12, attrs(nums("value_ints", 4, 5)), nil, vec(4, 5)},
		{"Constant", 12, attrs(word("value_string", "a")), nil, ir.TextOf([]string{"a"})},
		{"Constant", 12, attrs(&ir.Attr{Name: "value_strings", Strings: []string{"a", "b"}}), nil, text("a", "b")},
		{"Constant", 12, nil, nil, nil},
		{"ConstantOfShape", 9, nil, in(vec(2)), f32(0, 0)},
		{"ConstantOfShape", 9, nil, in(vec()), lone(ir.Float, 0)},
		{"ConstantOfShape", 9, nil, in(vec(-1)), nil},
		{"ConstantOfShape", 9, nil, nil, nil},
	})
}

func TestConstantOfShapeRepeatsItsValue(t *testing.T) {
	value := map[string]*ir.Array{"value": text("a")}
	out, err := optest.Run(Ops(), optest.Case{Type: "ConstantOfShape", Version: 9, In: in(vec(2)), Arrays: value})
	if err != nil {
		t.Fatal(err)
	}
	if err := same(out[0], text("a", "a")); err != nil {
		t.Error(err)
	}
}

func TestEyeLike(t *testing.T) {
	dtype := func(dt ir.DType) *ir.Attr { return num("dtype", int64(dt)) }
	half := numbers(ir.Float16, 0, 1)
	half.Shape = []int64{1, 2}
	check(t, []example{
		{"EyeLike", 9, nil, in(count(2, 3)), dims(2, 3)(1, 0, 0, 0, 1, 0)},
		{"EyeLike", 9, attrs(num("k", -1)), in(count(3, 2)), dims(3, 2)(0, 0, 1, 0, 0, 1)},
		{"EyeLike", 9, attrs(num("k", 1), dtype(ir.Float16)), in(count(1, 2)), half},
		{"EyeLike", 9, attrs(num("k", math.MinInt64)), in(count(1, 2)), dims(1, 2)(0, 0)},
		{"EyeLike", 9, attrs(num("k", math.MaxInt64)), in(count(1, 2)), dims(1, 2)(0, 0)},
		{"EyeLike", 9, attrs(dtype(ir.String)), in(count(1, 2)), nil},
		{"EyeLike", 9, nil, in(count(2)), nil},
	})
}

func TestOneHot(t *testing.T) {
	values := vec(7, 8)
	check(t, []example{
		{"OneHot", 11, nil, in(vec(0, -1, 3), scalarOf(3), values), dims(3, 3)(8, 7, 7, 7, 7, 8, 7, 7, 7)},
		{"OneHot", 11, attrs(num("axis", 0)), in(vec(1, 0), vec(2), values), dims(2, 2)(7, 8, 8, 7)},
		{"OneHot", 9, nil, in(f32(1.9), lone(ir.Float, 2), values), dims(1, 2)(7, 8)},
		{"OneHot", 11, nil, in(f32(float32(math.NaN()), float32(math.Inf(1)), -1e19), scalarOf(2), values),
			dims(3, 2)(7, 7, 7, 7, 7, 7)},
		{"OneHot", 9, nil, in(vec(0), lone(ir.Float, math.NaN()), values), nil},
		{"OneHot", 9, nil, in(scalarOf(0), scalarOf(2), text("off", "on")), text("on", "off")},
		{"OneHot", 9, nil, in(vec(0), scalarOf(-1), values), nil},
		{"OneHot", 9, nil, in(vec(0), vec(1, 2), values), nil},
		{"OneHot", 9, nil, in(vec(0), scalarOf(1), vec(7)), nil},
	})
}

// The conversion is not the processor's, which has one result for all of these on amd64 and others elsewhere.
func TestFloatsAsIntegers(t *testing.T) {
	got, err := asInts(numbers(ir.Double, 1.9, -1.9, math.NaN(), math.Inf(1), math.Inf(-1), 0x1p63, -0x1p63))
	want := []int64{1, -1, math.MinInt64, math.MaxInt64, math.MinInt64, math.MaxInt64, math.MinInt64}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestTrilu(t *testing.T) {
	x := dims(2, 3)(1, 2, 3, 4, 5, 6)
	lower := attrs(num("upper", 0))
	check(t, []example{
		{"Trilu", 14, nil, in(x), dims(2, 3)(1, 2, 3, 0, 5, 6)},
		{"Trilu", 14, nil, in(x, scalarOf(2)), dims(2, 3)(0, 0, 3, 0, 0, 0)},
		{"Trilu", 14, lower, in(x), dims(2, 3)(1, 0, 0, 4, 5, 0)},
		{"Trilu", 14, lower, in(x, scalarOf(-1)), dims(2, 3)(0, 0, 0, 4, 0, 0)},
		{"Trilu", 14, nil, in(x, scalarOf(math.MinInt64)), x},
		{"Trilu", 14, lower, in(x, scalarOf(math.MaxInt64)), x},
		{"Trilu", 14, nil, in(dims(2, 1, 1)(1, 2), scalarOf(1)), dims(2, 1, 1)(0, 0)},
		{"Trilu", 14, nil, in(vec(1)), nil},
		{"Trilu", 14, nil, in(x, vec(1, 2)), nil},
	})
}

func TestRanges(t *testing.T) {
	of := func(dt ir.DType, start, limit, delta float64) []*ir.Array {
		return in(lone(dt, start), lone(dt, limit), lone(dt, delta))
	}
	check(t, []example{
		{"Range", 11, nil, of(ir.Int64, 3, 9, 3), vec(3, 6)},
		{"Range", 11, nil, of(ir.Int64, 10, 4, -2), vec(10, 8, 6)},
		{"Range", 11, nil, of(ir.Int64, 4, 10, -2), vec()},
		{"Range", 11, nil, of(ir.Int16, 0, 5, 2), numbers(ir.Int16, 0, 2, 4)},
		{"Range", 11, nil, of(ir.Float, 0, 1, 0.3), f32(0, 0.3, 2*float32(0.3), 3*float32(0.3))},
		{"Range", 11, nil, of(ir.Double, 1, 0, -0.5), numbers(ir.Double, 1, 0.5)},
		{"Range", 27, nil, of(ir.Float16, 2048, 2052, 1), numbers(ir.Float16, 2048, 2049, 2050, 2051)},
		{"Range", 11, nil, in(scalarOf(math.MaxInt64-1), scalarOf(math.MaxInt64), scalarOf(math.MaxInt64)),
			vec(math.MaxInt64 - 1)},
		{"Range", 11, nil, in(scalarOf(0), scalarOf(math.MinInt64), scalarOf(math.MinInt64)), vec(0)},
		{"Range", 11, nil, of(ir.Int64, 0, 1, 0), nil},
		{"Range", 11, nil, of(ir.Float, 0, 1, 0), nil},
		{"Range", 11, nil, of(ir.Float, 0, math.NaN(), 1), nil},
		{"Range", 11, nil, in(scalarOf(0), lone(ir.Float, 1), scalarOf(1)), nil},
		{"Range", 11, nil, in(vec(0, 1), scalarOf(1), scalarOf(1)), nil},
	})
}

// Blocks of 2×1 in an image of 3×1 overlap in the middle row.
func TestCol2Im(t *testing.T) {
	x := dims(1, 2, 2)(1, 2, 10, 20)
	check(t, []example{
		{"Col2Im", 18, nil, in(x, vec(3, 1), vec(2, 1)), dims(1, 1, 3, 1)(1, 12, 20)},
		{"Col2Im", 18, attrs(nums("strides", 2, 1)), in(x, vec(4, 1), vec(2, 1)), dims(1, 1, 4, 1)(1, 10, 2, 20)},
		{"Col2Im", 18, attrs(nums("pads", 1, 0, 1, 0), nums("dilations", 2, 1)), in(x, vec(2, 1), vec(2, 1)),
			dims(1, 1, 2, 1)(2, 10)},
		{"Col2Im", 18, nil, in(x, vec(4, 1), vec(2, 1)), nil},
		{"Col2Im", 18, nil, in(x, vec(1, 1), vec(2, 1)), nil},
		{"Col2Im", 18, attrs(nums("strides", 0, 1)), in(x, vec(3, 1), vec(2, 1)), nil},
		// above 2^53, which float64 would round
		{"Col2Im", 18, nil, in(dims(1, 2, 2)(1<<53, 2, 10, 1<<62+1), vec(3, 1), vec(2, 1)),
			dims(1, 1, 3, 1)(1<<53, 12, 1<<62+1)},
		{"Col2Im", 18, nil, in(dims(1, 2, 2)(0, 1<<53, 1, 0), vec(3, 1), vec(2, 1)), dims(1, 1, 3, 1)(0, 1<<53+1, 0)},
	})
}

// Sums of integers wrap around, as in ONNX's reference implementation.
func TestCol2ImOfEachInteger(t *testing.T) {
	for _, c := range []struct{ x, want *ir.Array }{
		{ir.ArrayOf([]int8{1, 100, 100, 2}, 1, 2, 2), ir.ArrayOf([]int8{1, -56, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]uint8{1, 200, 100, 2}, 1, 2, 2), ir.ArrayOf([]uint8{1, 44, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]int16{1, 1 << 14, 1 << 14, 2}, 1, 2, 2), ir.ArrayOf([]int16{1, -1 << 15, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]uint16{1, 1 << 15, 1 << 15, 2}, 1, 2, 2), ir.ArrayOf([]uint16{1, 0, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]int32{1, 1 << 30, 1 << 30, 2}, 1, 2, 2), ir.ArrayOf([]int32{1, -1 << 31, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]uint32{1, 1 << 31, 1 << 31, 2}, 1, 2, 2), ir.ArrayOf([]uint32{1, 0, 2}, 1, 1, 3, 1)},
		{ir.ArrayOf([]uint64{1, 1 << 63, 1, 2}, 1, 2, 2), ir.ArrayOf([]uint64{1, 1<<63 + 1, 2}, 1, 1, 3, 1)},
	} {
		check(t, []example{{"Col2Im", 18, nil, in(c.x, vec(3, 1), vec(2, 1)), c.want}})
	}
}

// The boxes of the specification's tests: the second and third overlap almost completely, and so do the fourth and
// fifth.
func TestNonMaxSuppression(t *testing.T) {
	boxes := ir.ArrayOf([]float32{0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,
		1, 101}, 1, 6, 4)
	scores := ir.ArrayOf([]float32{0.9, 0.75, 0.6, 0.95, 0.5, 0.3}, 1, 1, 6)
	half := lone(ir.Float, 0.5)
	check(t, []example{
		{"NonMaxSuppression", 10, nil, in(boxes, scores, vec(3), half), dims(3, 3)(0, 0, 3, 0, 0, 0, 0, 0, 5)},
		{"NonMaxSuppression", 11, nil, in(boxes, scores, scalarOf(3), half, lone(ir.Float, 0.4)),
			dims(2, 3)(0, 0, 3, 0, 0, 0)},
		{"NonMaxSuppression", 11, nil, in(boxes, scores, scalarOf(1), half), dims(1, 3)(0, 0, 3)},
		{"NonMaxSuppression", 11, nil, in(boxes, scores), count(0, 3)},
		{"NonMaxSuppression", 11, nil, in(boxes, scores, scalarOf(3), lone(ir.Float, 2)), nil},
		{"NonMaxSuppression", 11, nil, in(boxes, boxes, scalarOf(3)), nil},
	})
}
