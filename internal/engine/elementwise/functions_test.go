package elementwise

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// samples are numbers of many magnitudes, in order, with both infinities, NaN and zeros.
func samples() []float64 {
	x := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1), 1, -1}
	for i := range 3000 {
		x = append(x, math.Sin(float64(i))*math.Exp(float64(i%23)-15))
	}
	return x
}

// All functions in float32, float16 and bfloat16 are close to the float64 functions of package math.
func TestFunctionsOfEachFloat(t *testing.T) {
	for _, dt := range []struct {
		ir.DType
		epsilon, least float64 // the distance from 1 to its neighbour, and the smallest number above 0
	}{{ir.Float, 0x1p-23, 0x1p-126}, {ir.Float16, 0x1p-10, 0x1p-24}, {ir.BFloat16, 0x1p-7, 0x1p-126}} {
		x := cast(t, optest.Array(samples()...), dt.DType)
		wide := cast(t, x, ir.Double)
		for _, o := range Ops() {
			if len(o.InPlace) != 1 || o.Type == "Cast" || o.Type == "CastLike" || o.Type == "Dropout" ||
				o.Type == "Pow" || o.Type == "BitwiseNot" || o.Type == "Not" || o.Type == "BiasGelu" {
				continue
			}
			c := optest.Case{Domain: o.Domain, Type: o.Type, Version: 28, In: arrays(x)}
			got, err := optest.Run(Ops(), c)
			if err != nil {
				t.Errorf("%s of %s: %v", o.Type, dt, err)
				continue
			}
			c.In = arrays(wide)
			want, err := optest.Run(Ops(), c)
			if err != nil {
				t.Fatal(err)
			}
			limit := cast(t, cast(t, want[0], dt.DType), ir.Double) // without values that the type rounds to Inf
			near(t, o.Type+" of "+dt.String(), wide, got[0], limit, dt.epsilon, dt.least)
		}
	}
}

// near allows for two roundings of the argument, which weigh more if the result is much smaller.
func near(t *testing.T, what string, x, got, want *ir.Array, epsilon, least float64) {
	t.Helper()
	arg, g, w := floats(t, x), floats(t, got), floats(t, want)
	for i := range g {
		a := math.Abs(arg[i])
		if same(g[i], w[i]) || math.Abs(g[i]-w[i]) <= epsilon*(math.Abs(w[i])*(1+2*a)+min(a, 1))+least {
			continue
		}
		t.Errorf("%s at %v: %v, want %v", what, arg[i], g[i], w[i])
		return
	}
}

func TestFunctionsOfIntegers(t *testing.T) {
	x := optest.Array[int8](-128, -3, 0, 5)
	check(t, "Abs", run(t, "Abs", 13, arrays(x)), -128, 3, 0, 5)
	check(t, "Neg", run(t, "Neg", 13, arrays(x)), -128, 3, 0, -5)
	check(t, "Sign", run(t, "Sign", 13, arrays(x)), -1, -1, 0, 1)
	check(t, "Relu", run(t, "Relu", 14, arrays(x)), 0, 0, 0, 5)
	check(t, "BitwiseNot", run(t, "BitwiseNot", 18, arrays(x)), 127, 2, -1, -6)
	check(t, "Shrink", run(t, "Shrink", 9, arrays(x), ir.FloatAttr("lambd", 3), ir.FloatAttr("bias", 1)), -127, 0, 0, 4)
	check(t, "Not", run(t, "Not", 1, arrays(ir.ArrayOf([]bool{true, false}, 2))), 0, 1)
}

func TestIsNaNAndIsInf(t *testing.T) {
	x := optest.Array(math.NaN(), math.Inf(1), math.Inf(-1), 1)
	for _, dt := range []ir.DType{ir.Double, ir.Float, ir.Float16, ir.BFloat16, ir.Float8E5M2} {
		raw := run(t, "Cast", 25, arrays(x), ir.IntAttr("to", int64(dt)), ir.IntAttr("saturate", 0))
		check(t, dt.String(), run(t, "IsNaN", 20, arrays(raw)), 1, 0, 0, 0)
		check(t, dt.String(), run(t, "IsInf", 20, arrays(raw)), 0, 1, 1, 0)
		check(t, dt.String(), run(t, "IsInf", 20, arrays(raw), ir.IntAttr("detect_negative", 0)), 0, 1, 0, 0)
	}
}

func TestEluIsAccurateForSmallNumbers(t *testing.T) {
	got := floats(t, run(t, "Elu", 6, arrays(optest.Array[float32](-1e-6))))[0]
	if want := math.Expm1(float64(float32(-1e-6))); math.Abs(got/want-1) > 0x1p-22 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClip(t *testing.T) {
	x, lo, hi := optest.Array[float32](-5, 0, 5, float32(math.NaN())), optest.Scalar[float32](-1),
		optest.Scalar[float32](2)
	nan := math.NaN()
	check(t, "attributes", run(t, "Clip", 10, arrays(x), ir.FloatAttr("min", -1), ir.FloatAttr("max", 2)), -1, 0, 2,
		nan)
	check(t, "inputs", run(t, "Clip", 11, arrays(x, lo, hi)), -1, 0, 2, nan)
	check(t, "no minimum", run(t, "Clip", 13, arrays(x, nil, hi)), -5, 0, 2, nan)
	check(t, "crossed", run(t, "Clip", 13, arrays(x, hi, lo)), -1, -1, -1, nan)
	check(t, "uint8", run(t, "Clip", 13, arrays(optest.Array[uint8](0, 9, 200), optest.Scalar[uint8](5))), 5, 9, 200)
	check(t, "Inf", run(t, "Clip", 13, arrays(cast(t, optest.Array(math.Inf(1)), ir.Float16))), 65504)
}

func TestDropoutInference(t *testing.T) {
	for _, c := range []struct {
		version int64
		mask    ir.DType
	}{{7, ir.Float}, {10, ir.Bool}, {13, ir.Bool}} {
		out, err := optest.Run(Ops(), optest.Case{Type: "Dropout", Version: c.version,
			In: arrays(optest.Array[float32](1, -2)), Outputs: 2})
		if err != nil {
			t.Fatal(err)
		}
		check(t, "data", out[0], 1, -2)
		if check(t, "mask", out[1], 1, 1); out[1].DType != c.mask {
			t.Errorf("opset %d: the mask is %s, want %s", c.version, out[1], c.mask)
		}
	}
}

// numpy.random.RandomState(0).uniform(size=6) is 0.5488, 0.7152, 0.6028, 0.5449, 0.4237, 0.6459.
func TestDropoutInTraining(t *testing.T) {
	in := arrays(optest.Array[float32](1, 2, 3, 4, 5, -6), optest.Scalar[float32](0.55), optest.Scalar(true))
	out, err := optest.Run(Ops(), optest.Case{Type: "Dropout", Version: 13, In: in, Outputs: 2,
		Attrs: []*ir.Attr{ir.IntAttr("seed", 0)}})
	if err != nil {
		t.Fatal(err)
	}
	scale := 1 / (1 - float32(0.55))
	check(t, "mask", out[1], 0, 1, 1, 0, 0, 1)
	check(t, "data", out[0], 0, float64(2*scale), float64(3*scale), 0, 0, float64(-6*scale))
	in[1] = optest.Scalar[float32](1)
	if _, err := optest.Run(Ops(), optest.Case{Type: "Dropout", Version: 13, In: in}); err == nil {
		t.Error("ratio 1 is accepted")
	}
}

func TestTwisterEqualsNumPy(t *testing.T) {
	r := newTwister(42)
	got := []float64{r.uniform(), r.uniform(), r.uniform()}
	if want := []float64{0.3745401188473625, 0.9507143064099162, 0.7319939418114051}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBiasIsAddedAlongTheLastAxis(t *testing.T) {
	x, bias := ir.ArrayOf([]float32{1, 2, 3, 4}, 2, 2), optest.Array[float32](-1, 1)
	want := run(t, "Gelu", 20, arrays(optest.Array[float32](0, 3, 2, 5)))
	out, err := optest.Run(Ops(), optest.Case{Domain: microsoft, Type: "BiasGelu", Version: 1, In: arrays(x, bias)})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "BiasGelu", out[0], floats(t, want)...)
}

// Gates that close have the limit, ±0, at Inf, in float32 as in float64.
func TestGatesAtInfinity(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		op   string
		attr []*ir.Attr
		want []float64 // at -Inf, Inf, NaN
	}{
		{"Gelu", nil, []float64{0, inf, math.NaN()}},
		{"Gelu", []*ir.Attr{{Name: "approximate", Type: ir.AttrString, S: "tanh"}}, []float64{0, inf, math.NaN()}},
		{"Swish", nil, []float64{0, inf, math.NaN()}},
		{"Swish", []*ir.Attr{ir.FloatAttr("alpha", 1.702)}, []float64{0, inf, math.NaN()}},
		{"Swish", []*ir.Attr{ir.FloatAttr("alpha", -2)}, []float64{-inf, 0, math.NaN()}},
	} {
		for _, dt := range []ir.DType{ir.Float, ir.Double} {
			x := cast(t, optest.Array(-inf, inf, math.NaN()), dt)
			y := run(t, c.op, 24, arrays(x), c.attr...)
			check(t, fmt.Sprint(c.op, c.attr, dt), y, c.want...)
			for i, v := range floats(t, y) {
				if v == 0 && math.Signbit(v) != (i == 0) {
					t.Errorf("%s %v of %s at %d: the zero is %v", c.op, c.attr, dt, i, v)
				}
			}
		}
	}
}
