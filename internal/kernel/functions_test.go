package kernel

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"
)

var exhaustive = flag.Bool("exhaustive", false, "try functions of one element, and conversions, on all 2^32 "+
	"float32, not on a sample")

// A unaryFunction is a function of one element with its twin, a reference in float64 that is accurate to a few ulp of
// float64, and the maximum error in ulp of float32.
type unaryFunction struct {
	name string
	run  func(dst, x []float32)
	twin func(x float32) float32
	ref  func(x float64) float64
	ulp  float64
}

var unaryFunctions = []unaryFunction{
	{"Abs", Abs, abs, math.Abs, 0},
	{"Neg", Neg, neg, func(x float64) float64 { return -x }, 0},
	{"Relu", Relu, relu, func(x float64) float64 { return math.Max(x, 0) }, 0},
	{"HardSwish", HardSwish, hardSwish, refHardSwish, 0.501},
	{"Sqrt", Sqrt, sqrt, math.Sqrt, 0.501},
	{"Reciprocal", Reciprocal, func(x float32) float32 { return 1 / x }, func(x float64) float64 { return 1 / x },
		0.501},
	{"Exp", Exp, expGo, math.Exp, 0.6},
	{"Sigmoid", Sigmoid, sigmoidGo, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 0.6},
	{"Silu", Silu, siluGo, limitAtMinusInf(func(x float64) float64 { return x / (1 + math.Exp(-x)) }), 3},
	{"GeluTanh", GeluTanh, geluTanhGo, limitAtMinusInf(refGeluTanh), 0.6},
	{"Gelu", Gelu, geluGo, limitAtMinusInf(refGelu), 5},
	{"Erf", Erf, erfGo, math.Erf, 0.6},
	{"Tanh", Tanh, tanhGo, math.Tanh, 0.6},
	{"Log", Log, logGo, math.Log, 0.6},
	{"Softplus", Softplus, softplusGo, func(x float64) float64 {
		return math.Max(x, 0) +
			math.Log1p(math.Exp(-math.Abs(x)))
	}, 0.6},
	{"Sin", Sin, sinGo, math.Sin, 0.6},
	{"Cos", Cos, cosGo, math.Cos, 0.6},
}

// refHardSwish rounds after each step, like the operators of HardSwish's definition.
func refHardSwish(x float64) float64 {
	sixth := float64(float32(x * float64(float32(1.0/6))))
	return x * min(max(float64(float32(sixth+0.5)), 0), 1)
}

func refGelu(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }

func refGeluTanh(x float64) float64 {
	return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func limitAtMinusInf(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0
		}
		return f(x)
	}
}

// TestFunctionsAreAccurate covers every exponent and sign, many mantissas and special values.
func TestFunctionsAreAccurate(t *testing.T) {
	for _, f := range unaryFunctions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			worst, at := 0.0, float32(0)
			eachPattern(func(x []float32) {
				got := make([]float32, len(x))
				f.run(got, x)
				for i, v := range x {
					want := f.ref(float64(v))
					if worst >= 0.5 && got[i] == float32(want) {
						continue // correctly rounded, which is at most half an ulp
					}
					if e := ulps(got[i], want); !(e <= worst) {
						worst, at = e, v
					}
				}
			})
			if !(worst <= f.ulp) {
				t.Errorf("at %g (%#08x): %g ulp, want %g", at, math.Float32bits(at), worst, f.ulp)
			}
			t.Logf("%.4f ulp at %g", worst, at)
		})
	}
}

func TestFunctionsEqualTheirTwins(t *testing.T) {
	for _, f := range unaryFunctions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			eachPattern(func(x []float32) {
				got, want := make([]float32, len(x)), make([]float32, len(x))
				f.run(got, x)
				each(want, x, f.twin)
				wantFloats(t, got, want)
			})
		})
	}
}

// TestFunctionsWorkInPlace checks every length around the vector size, for which results must not change, with a guard
// around the elements.
func TestFunctionsWorkInPlace(t *testing.T) {
	for _, f := range unaryFunctions {
		t.Run(f.name, func(t *testing.T) {
			eachSample(t, func(t *testing.T, x []float32) {
				want := make([]float32, len(x))
				each(want, x, f.twin)
				got, intact := guarded[float32](len(x), 7)
				copy(got, x)
				f.run(got, got)
				wantFloats(t, got, want)
				intact(t)
			})
		})
	}
}

func TestFunctionsWantEqualLengths(t *testing.T) {
	for _, f := range unaryFunctions {
		wantPanic(t, f.name, func() { f.run(make([]float32, 3), make([]float32, 4)) })
	}
}

func FuzzFunctions(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) {
		got, want := make([]float32, len(x)), make([]float32, len(x))
		for _, f := range unaryFunctions {
			f.run(got, x)
			each(want, x, f.twin)
			wantFloats(t, got, want)
		}
	})
}

// eachPattern calls body with blocks of float32 of all bit patterns, or of special values and a sample with every
// exponent.
func eachPattern(body func(x []float32)) {
	const block = 1 << 12
	step, r := uint64(1), rand.New(rand.NewPCG(3, 0))
	if !*exhaustive {
		step = 1 << 12
	}
	x := append(make([]float32, 0, block), specialFloats()...)
	for b := uint64(0); b < 1<<32; b += step {
		if len(x) == block {
			body(x)
			x = x[:0]
		}
		x = append(x, math.Float32frombits(uint32(b+r.Uint64N(step))))
	}
	body(x)
}

func specialFloats() []float32 {
	var x []float32
	for _, b := range specials {
		x = append(x, math.Float32frombits(b))
	}
	return x
}

// ulps is the distance of got from want, in units of the last place of want as a float32. Inf counts as 2^128. NaN for
// NaN and zero for less than half of the smallest float32 are correct.
func ulps(got float32, want float64) float64 {
	g := float64(got)
	if g == want || g != g && want != want {
		return 0
	}
	const top = 1 << 128
	g, want = min(max(g, -top), top), min(max(want, -top), top)
	_, exponent := math.Frexp(want)
	return math.Abs(g-want) / math.Ldexp(1, max(exponent-24, -149))
}

// wantFloats compares bits, except that any NaN equals any other.
func wantFloats(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		g, w := math.Float32bits(got[i]), math.Float32bits(want[i])
		if g != w && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("element %d of %d: got %#08x, want %#08x", i, len(want), g, w)
		}
	}
}

// TestMathAssemblyUsesAVX2Only: the generator silently uses registers beyond Y15 when it runs out, and those exist in
// AVX-512 only.
func TestMathAssemblyUsesAVX2Only(t *testing.T) {
	text, err := os.ReadFile("math_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`\b[XY](1[6-9]|2\d|3[01])\b`).Find(text); found != nil {
		t.Errorf("math_amd64.s uses %s", found)
	}
}
