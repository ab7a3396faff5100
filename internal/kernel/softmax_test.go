package kernel

import (
	"math"
	"testing"
)

// refLogSumExp is the logarithm of the sum of e^(x-top) by math's functions, and top.
func refLogSumExp(x []float32) (rest, top float64) {
	top = math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	// The maximum contributes 1; log1p preserves the contributions of the others.
	return math.Log1p(sum - 1), top
}

func TestSoftmaxIsAccurate(t *testing.T) {
	eachSample(t, func(t *testing.T, x []float32) {
		got, logs := make([]float32, len(x)), make([]float32, len(x))
		Softmax(got, x)
		LogSoftmax(logs, x)
		rest, top := refLogSumExp(x)
		for i, v := range x {
			want := float64(v) - top - rest
			if e := ulps(got[i], math.Exp(want)); !(e <= 2) {
				t.Fatalf("element %d of %d: got %g, want %g: %g ulp", i, len(x), got[i], math.Exp(want), e)
			}
			if e := ulps(logs[i], want); !(e <= 0.6) {
				t.Fatalf("logarithm %d of %d: got %g, want %g: %g ulp", i, len(x), logs[i], want, e)
			}
		}
	})
}

func checkSoftmax(t *testing.T, x []float32) {
	t.Helper()
	want := make([]float32, len(x))
	top := float64(ReduceMax(x))
	var l, again sumLanes
	l.addExpStoreGo(want, x, top)
	again.addExpGo(x, top)
	sum := l.fold()
	mulScalarGo(want, want, float32(1/sum))
	got, intact := guarded[float32](len(x), 7)
	Softmax(got, x)
	wantFloats(t, got, want)
	copy(got, x)
	Softmax(got, got)
	wantFloats(t, got, want)

	rest := sum
	if sum == sum {
		rest = log64(sum)
	}
	subTwiceGo(want, x, top, rest)
	copy(got, x)
	LogSoftmax(got, got)
	wantFloats(t, got, want)
	intact(t)
	if s := again.fold(); s != sum && s == s {
		t.Fatalf("sum without storing: got %g, want %g", s, sum)
	}
}

func TestSoftmaxEqualsItsTwin(t *testing.T) { eachSample(t, checkSoftmax) }

func FuzzSoftmax(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkSoftmax(t, x) })
}

func TestSoftmaxOfInfinities(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		x         []float32
		soft, log []float32
	}{
		{"-Inf next to numbers", []float32{-inf, 1, 1}, []float32{0, 0.5, 0.5}, []float32{-inf, -math.Ln2, -math.Ln2}},
		{"-Inf alone", []float32{-inf, -inf}, []float32{nan, nan}, []float32{nan, nan}},
		{"+Inf", []float32{0, inf}, []float32{nan, nan}, []float32{nan, nan}},
		{"NaN", []float32{0, nan}, []float32{nan, nan}, []float32{nan, nan}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]float32, len(c.x))
			Softmax(got, c.x)
			wantFloats(t, got, c.soft)
			LogSoftmax(got, c.x)
			wantFloats(t, got, c.log)
		})
	}
}

func TestSoftmaxOfLargeNumbers(t *testing.T) {
	x := []float32{3e38, -3e38, 3e38}
	Softmax(x, x)
	wantFloats(t, x, []float32{0.5, 0, 0.5})
}
