package elementwise

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// Small integers are preserved by each pair of types that can represent them.
func TestCastOfEachPairOfTypes(t *testing.T) {
	types := []ir.DType{
		ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16,
		ir.Uint32, ir.Uint64,
		ir.Int4, ir.Uint4, ir.Uint2, ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ,
		ir.Float6E2M3, ir.Float6E3M2, ir.Float4E2M1,
		ir.String,
	}
	x := ir.NewArray(ir.Int32, 3, 1111)
	for i := range ir.View[int32](x) {
		ir.View[int32](x)[i] = int32(i * 5 % 4)
	}
	want := floats(t, x)
	for _, from := range types {
		a := cast(t, x, from)
		for _, to := range types {
			if got := floats(t, cast(t, a, to)); !slices.Equal(got, want) {
				t.Errorf("%s to %s: %v, want %v", from, to, got[:9], want[:9])
			}
		}
	}
}

func TestCastOutOfRange(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		x    *ir.Array
		to   ir.DType
		want []float64
	}{
		{optest.Array[int16](200, -1, 300), ir.Int8, []float64{-56, -1, 44}},
		{optest.Array[int64](-1), ir.Uint64, []float64{math.MaxUint64}},
		{optest.Array(nan, inf, -inf, 3e9, -2.9), ir.Int32,
			[]float64{math.MinInt32, math.MinInt32, math.MinInt32, math.MinInt32, -2}},
		{optest.Array(nan, inf, 1e19, -2.9), ir.Int64, []float64{math.MinInt64, math.MinInt64, math.MinInt64, -2}},
		{optest.Array(3e9, -1), ir.Uint32, []float64{3e9, math.MaxUint32}},
		{optest.Array(1e19, -1), ir.Uint64, []float64{1e19, math.MaxUint64}},
		{optest.Array(300.7, -1, nan), ir.Uint8, []float64{44, 255, 0}},
		{optest.Array[float32](-9, 8, 15), ir.Int4, []float64{7, -8, -1}},
		{optest.Array(nan, 0, math.Copysign(0, -1), 1e-9), ir.Bool, []float64{1, 0, 0, 1}},
		{optest.Array(1e300, -1e300), ir.Float, []float64{inf, -inf}},
		{optest.Array(65519, 65520, -1e9), ir.Float16, []float64{65504, inf, -inf}},
	} {
		check(t, c.x.String()+" to "+c.to.String(), cast(t, c.x, c.to), c.want...)
	}
}

// 1 + 2⁻¹¹ + 2⁻⁴⁰ is above the middle of two float16, but its nearest float32 is the middle, which would be rounded
// down to even.
func TestDoubleIsRoundedOnce(t *testing.T) {
	x := optest.Array(1+0x1p-11+0x1p-40, -1-0x1p-11-0x1p-40, 1+0x1p-11)
	check(t, "float16", cast(t, x, ir.Float16), 1+0x1p-10, -1-0x1p-10, 1)
	check(t, "bfloat16", cast(t, optest.Array(1+0x1p-8+0x1p-40), ir.BFloat16), 1+0x1p-7)
}

func TestCastToInfOfFNUZDependsOnTheOpset(t *testing.T) {
	x := optest.Array[float32](float32(math.Inf(1)))
	to := ir.IntAttr("to", int64(ir.Float8E4M3FNUZ))
	check(t, "opset 23", run(t, "Cast", 23, arrays(x), to), math.NaN())
	check(t, "opset 24", run(t, "Cast", 24, arrays(x), to), 240)
	check(t, "opset 24, saturate 0", run(t, "Cast", 24, arrays(x), to, ir.IntAttr("saturate", 0)), math.NaN())
}

func TestCastOfStrings(t *testing.T) {
	text := ir.TextOf([]string{"3.14", " -INF", "+inf", "nan", "1e-5", "1E8", "9007199254740993"}, 7)
	check(t, "to double", cast(t, text, ir.Double), 3.14, math.Inf(-1), math.Inf(1), math.NaN(), 1e-5, 1e8,
		9007199254740992)
	whole := ir.TextOf([]string{"100.5", "-7", "9007199254740993", "18446744073709551615"}, 4)
	if got := ir.View[int64](cast(t, whole, ir.Int64)); !slices.Equal(got, []int64{100, -7, 9007199254740993, -1}) {
		t.Errorf("to int64: %v", got)
	}
	if _, err := optest.Run(Ops(), optest.Case{Type: "Cast", Version: 13,
		In: arrays(ir.TextOf([]string{"1", "Hello World!"}, 2)), Attrs: []*ir.Attr{ir.IntAttr("to", 1)}}); err == nil {
		t.Error("a string that is not a number is accepted")
	}
}

func TestCastToStrings(t *testing.T) {
	for _, c := range []struct {
		x    *ir.Array
		want []string
	}{
		{optest.Array[float32](314.15926, 0.1, 1, 1e20, 1e-7, float32(math.NaN()), float32(math.Inf(-1))),
			[]string{"314.15927", "0.1", "1", "1e+20", "1e-07", "NaN", "-INF"}},
		{optest.Array(3.141592653589793, 123456789012), []string{"3.141592653589793", "123456789012"}},
		{optest.Array[uint64](math.MaxUint64), []string{"18446744073709551615"}},
		{optest.Array[int8](-5), []string{"-5"}},
		{ir.ArrayOf([]bool{true, false}, 2), []string{"1", "0"}},
	} {
		if got := cast(t, c.x, ir.String).Text; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.x, got, c.want)
		}
	}
}

func TestCastLikeAndBitCast(t *testing.T) {
	like := run(t, "CastLike", 19, arrays(optest.Array[float32](1.5, 2), optest.Scalar[int16](0)))
	if like.DType != ir.Int16 {
		t.Errorf("got %s", like)
	}
	check(t, "CastLike", like, 1, 2)
	bits := run(t, "BitCast", 26, arrays(optest.Array[float32](1)), ir.IntAttr("to", int64(ir.Uint32)))
	check(t, "BitCast", bits, 0x3f800000)
}

func TestCastInPlace(t *testing.T) {
	out, err := optest.Run(Ops(), optest.Case{Type: "Cast", Version: 13, In: arrays(optest.Array[float32](1.5, -2.5)),
		Attrs: []*ir.Attr{ir.IntAttr("to", int64(ir.Int32))}, InPlace: 1})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "Cast", out[0], 1, -2)
}
