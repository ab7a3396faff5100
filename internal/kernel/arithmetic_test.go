package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

type binaryFunction struct {
	name string
	run  func(dst, a, b []float32)
	ref  func(a, b float32) float32
}

var binaryFunctions = []binaryFunction{
	{"Add", Add, func(a, b float32) float32 { return a + b }},
	{"Sub", Sub, func(a, b float32) float32 { return a - b }},
	{"Mul", Mul, func(a, b float32) float32 { return a * b }},
	{"Div", Div, func(a, b float32) float32 { return a / b }},
	{"Max", Max, refMax},
	{"Min", Min, func(a, b float32) float32 { return -refMax(-a, -b) }},
}

var scalarFunctions = []struct {
	name string
	run  func(dst, x []float32, s float32)
	ref  func(x, s float32) float32
}{
	{"AddScalar", AddScalar, func(x, s float32) float32 { return x + s }},
	{"SubScalar", SubScalar, func(x, s float32) float32 { return x - s }},
	{"ScalarSub", func(dst, x []float32, s float32) { ScalarSub(dst, s, x) },
		func(x, s float32) float32 { return s - x }},
	{"MulScalar", MulScalar, func(x, s float32) float32 { return x * s }},
	{"DivScalar", DivScalar, func(x, s float32) float32 { return x / s }},
	{"ScalarDiv", func(dst, x []float32, s float32) { ScalarDiv(dst, s, x) },
		func(x, s float32) float32 { return s / x }},
	{"MaxScalar", MaxScalar, refMax},
	{"MinScalar", MinScalar, func(x, s float32) float32 { return -refMax(-x, -s) }},
	{"LeakyRelu", LeakyRelu, func(x, s float32) float32 {
		if x >= 0 {
			return x
		}
		return x * s
	}},
	{"ScaleShift", func(dst, x []float32, s float32) { ScaleShift(dst, x, s, 3) },
		func(x, s float32) float32 { return float32(x*s) + 3 }},
	{"HardSigmoid", func(dst, x []float32, s float32) { HardSigmoid(dst, x, s, 0.5) }, func(x, s float32) float32 {
		return refMax(0, -refMax(-1, -(float32(x*s)+0.5)))
	}},
	{"Clip", func(dst, x []float32, s float32) { Clip(dst, x, -2, s) }, refClip},
	{"Axpy", func(dst, x []float32, s float32) { copy(dst, x); Axpy(dst, s, dst) },
		func(x, s float32) float32 { return x + float32(s*x) }},
}

// refMax is ONNX Max by cases: NaN propagates, and of zeros the positive one is returned.
func refMax(a, b float32) float32 {
	switch {
	case a != a || b != b:
		return float32(math.NaN())
	case a == 0 && b == 0 && !math.Signbit(float64(b)):
		return b
	case b > a:
		return b
	}
	return a
}

// refClip is ONNX Clip between -2 and s by cases.
func refClip(x, s float32) float32 {
	switch {
	case x != x || s != s && x >= -2:
		return x
	case s < x || s < -2:
		return s
	case x < -2:
		return -2
	}
	return x
}

func checkBinary(t *testing.T, f binaryFunction, a, b []float32) {
	t.Helper()
	want := make([]float32, len(a))
	for i := range want {
		want[i] = f.ref(a[i], b[i])
	}
	got, intact := guarded[float32](len(a), 7)
	f.run(got, a, b)
	wantFloats(t, got, want)
	intact(t)
	copy(got, a)
	f.run(got, got, b)
	wantFloats(t, got, want)
	copy(got, b)
	f.run(got, a, got)
	wantFloats(t, got, want)
}

func checkScalars(t *testing.T, x []float32, s float32) {
	t.Helper()
	for _, f := range scalarFunctions {
		want := make([]float32, len(x))
		for i, v := range x {
			want[i] = f.ref(v, s)
		}
		got, intact := guarded[float32](len(x), 7)
		f.run(got, x, s)
		wantFloats(t, got, want)
		intact(t)
		copy(got, x)
		f.run(got, got, s)
		wantFloats(t, got, want)
	}
}

func TestBinaryFunctions(t *testing.T) {
	for _, f := range binaryFunctions {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 0))
			eachSample(t, func(t *testing.T, a []float32) {
				b := make([]float32, len(a))
				for i := range b {
					b[i] = a[r.IntN(len(a))]
				}
				checkBinary(t, f, a, b)
			})
		})
	}
}

// TestBinaryFunctionsOnAllPairsOfSpecials has zeros of both signs, NaN and Inf on both sides.
func TestBinaryFunctionsOnAllPairsOfSpecials(t *testing.T) {
	var a, b []float32
	for _, v := range specials {
		for _, w := range specials {
			a, b = append(a, math.Float32frombits(v)), append(b, math.Float32frombits(w))
		}
	}
	for _, f := range binaryFunctions {
		t.Run(f.name, func(t *testing.T) { checkBinary(t, f, a, b) })
	}
}

func TestScalarFunctions(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) { checkScalars(t, x, 0.75) })
	for _, b := range specials {
		s := math.Float32frombits(b)
		checkScalars(t, specialFloats(), s)
	}
}

func TestClipToAnEmptyRangeGivesTheUpperBound(t *testing.T) {
	x := []float32{-5, 0, 5, 6, 7, 8, 9, 10, 11}
	Clip(x, x, 3, 1)
	for i, v := range x {
		if v != 1 {
			t.Errorf("element %d: got %g, want 1", i, v)
		}
	}
}

func TestAxpyAddsToWhatIsThere(t *testing.T) {
	y, x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, []float32{9, 8, 7, 6, 5, 4, 3, 2, 1}
	Axpy(y, 10, x)
	wantFloats(t, y, []float32{91, 82, 73, 64, 55, 46, 37, 28, 19})
}

func TestArithmeticRequiresEqualLengths(t *testing.T) {
	three, four := make([]float32, 3), make([]float32, 4)
	for _, f := range binaryFunctions {
		wantPanic(t, f.name+" with a short dst", func() { f.run(three, four, four) })
		wantPanic(t, f.name+" with a short b", func() { f.run(four, four, three) })
	}
	for _, f := range scalarFunctions {
		if f.name != "Axpy" {
			wantPanic(t, f.name, func() { f.run(three, four, 1) })
		}
	}
	wantPanic(t, "Axpy", func() { Axpy(three, 1, four) })
}

func FuzzArithmetic(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, s, _ uint32) {
		checkScalars(t, x, math.Float32frombits(s))
		for _, f := range binaryFunctions {
			checkBinary(t, f, x[:len(x)/2], x[len(x)-len(x)/2:])
		}
	})
}
