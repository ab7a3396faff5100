package kernel

import (
	"math"
	"testing"
)

// gammaBeta are parameters that depend on the column, with a zero and a negative one among them.
func gammaBeta(n int) (gamma, beta []float32) {
	gamma, beta = make([]float32, n), make([]float32, n)
	for i := range n {
		gamma[i], beta[i] = float32(i%7)-2, float32(i%5)*0.3
	}
	return gamma, beta
}

// refMoments are mean and variance in float64, by definition.
func refMoments(x []float32) (mean, variance float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += float64(v) / n
	}
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / n
	}
	return mean, variance
}

// wantClose tolerates one rounding to float32 and cancellation errors of float64.
func wantClose(t *testing.T, name string, i int, got float32, want, magnitude float64) {
	t.Helper()
	if d := math.Abs(float64(got) - want); !(d <= math.Abs(want)*0x1p-24+magnitude*0x1p-40+0x1p-149) {
		t.Fatalf("%s: element %d: got %g, want %g", name, i, got, want)
	}
}

func TestNormalizationsAreAccurate(t *testing.T) {
	const eps = 1e-5
	eachSample(t, func(t *testing.T, x []float32) {
		if x = finite(x); len(x) == 0 {
			return
		}
		gamma, beta := gammaBeta(len(x))
		mean, variance := refMoments(x)
		inv := 1 / math.Sqrt(variance+float64(float32(eps)))
		square := 1 / math.Sqrt(variance+mean*mean+float64(float32(eps)))
		full, scaled, rms := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
		gotMean, gotInv := LayerNorm(full, x, gamma, beta, eps)
		LayerNorm(scaled, x, gamma, nil, eps)
		RMSNorm(rms, x, gamma, eps)
		size := float64(math.Float32frombits(AbsMaxBits(x)))
		wantClose(t, "mean", 0, gotMean, mean, size)
		wantClose(t, "inverse deviation", 0, gotInv, inv, inv)
		for i, v := range x {
			d, g, b := float64(v)-mean, float64(gamma[i]), float64(beta[i])
			wantClose(t, "LayerNorm", i, full[i], d*inv*g+b, size*inv*4+1)
			wantClose(t, "LayerNorm without beta", i, scaled[i], d*inv*g, size*inv*4)
			wantClose(t, "RMSNorm", i, rms[i], float64(v)*square*g, size*square*4)
		}
	})
}

func checkNormalizations(t *testing.T, x []float32) {
	t.Helper()
	gamma, beta := gammaBeta(len(x))
	got, intact := guarded[float32](len(x), 7)
	want := make([]float32, len(x))
	if len(x) == 0 {
		return
	}
	mean, variance := MeanVariance(x)
	inv := 1 / math.Sqrt(variance+0.5)
	for _, c := range []struct {
		twin, run func()
	}{
		{func() { scaleShiftAboutGo(want, x, gamma, beta, mean, inv) },
			func() { LayerNorm(got, got, gamma, beta, 0.5) }},
		{func() { scaleAboutGo(want, x, gamma, mean, inv) }, func() { LayerNorm(got, got, gamma, nil, 0.5) }},
		{func() { scaleAboutGo(want, x, gamma, 0, 1/math.Sqrt(ReduceSumSquare(x)/float64(len(x))+0.5)) },
			func() { RMSNorm(got, got, gamma, 0.5) }},
	} {
		copy(got, x)
		c.run()
		c.twin()
		wantFloats(t, got, want)
		intact(t)
	}
}

func TestNormalizationsEqualTheirTwins(t *testing.T) { eachSample(t, checkNormalizations) }

func FuzzNormalizations(f *testing.F) {
	fuzzFloats(f, func(t *testing.T, x []float32, _, _ uint32) { checkNormalizations(t, x) })
}

func TestNormalizationsWantEqualLengths(t *testing.T) {
	three, four := make([]float32, 3), make([]float32, 4)
	wantPanic(t, "dst", func() { LayerNorm(three, four, four, four, 0) })
	wantPanic(t, "gamma", func() { LayerNorm(four, four, three, four, 0) })
	wantPanic(t, "beta", func() { LayerNorm(four, four, four, three, 0) })
	wantPanic(t, "RMSNorm's gamma", func() { RMSNorm(four, four, three, 0) })
	wantPanic(t, "an empty row", func() { LayerNorm(nil, nil, nil, nil, 0) })
}
