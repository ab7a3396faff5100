package solve

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
)

func nearestSpecs() []Spec {
	var gs []Spec
	for _, r := range [][2]int32{{0, 15}, {-8, 7}, {0, 3}, {-2, 1}, {0, 255}, {-128, 127}} {
		for _, symmetric := range []bool{false, true} {
			for _, block := range []int{16, 32, 1000} {
				gs = append(gs, Spec{Low: r[0], High: r[1], Symmetric: symmetric, Block: block})
			}
		}
	}
	return gs
}

func weightsOf(k, n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(k), uint64(n)))
	w := make([]float32, k*n)
	for i := range w {
		w[i] = float32(r.NormFloat64()) * float32(1+i%n%5)
		if i%n == 3 {
			w[i] = 0
		}
		if i%n == 4 {
			w[i] = float32(math.Abs(float64(w[i]))) + 2 // a range without 0
		}
	}
	return w
}

// Every value is rounded to nearest: the error is at most half a step unless the value is clipped; a quarter more with
// error feedback.
func TestNearestIsNearest(t *testing.T) {
	const k, n = 75, 21
	w := weightsOf(k, n)
	for _, g := range nearestSpecs() {
		c, m := NewQuantized(k, n, g), NewQuantized(k, n, g)
		g.Feedback = true
		b := NewQuantized(k, n, g)
		Nearest(c, w)
		MSE(m, w)
		MSE(b, w)
		for i := range k {
			for j := range n {
				c.wantNearest(t, w[i*n+j], i, j, 0.5)
				m.wantNearest(t, w[i*n+j], i, j, 0.5)
				b.wantNearest(t, w[i*n+j], i, j, 0.75)
			}
		}
	}
}

// With error feedback the errors of a column sum to less than a quarter of those of round to nearest.
func TestErrorFeedbackSumsToZero(t *testing.T) {
	const k, n = 768, 64
	w := weightsOf(k, n)
	for _, g := range nearestSpecs() {
		t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) {
			g.Feedback = true
			c := NewQuantized(k, n, g)
			MSE(c, w)
			feedbackRows, plain := 0., 0.
			for j := range n {
				var moved, kept float64
				for i := range k {
					at := i/g.Block*n + j
					moved += float64(c.Weight(i, j) - w[i*n+j])
					zero := c.Zero[at]
					kept += float64(g.round(w[i*n+j], 1/c.Scale[at], zero))*float64(c.Scale[at]) - float64(w[i*n+j])
				}
				feedbackRows, plain = feedbackRows+math.Abs(moved), plain+math.Abs(kept)
			}
			if feedbackRows > plain/4 {
				t.Errorf("sums of errors are %g, with round to nearest %g", feedbackRows, plain)
			}
		})
	}
}

func (c *Quantized) wantNearest(t *testing.T, w float32, i, j int, most float64) {
	t.Helper()
	at := i/c.Spec.Block*c.N + j
	scale, zero := float64(c.Scale[at]), c.Zero[at]
	if zero < c.Spec.Low || zero > c.Spec.High || c.Spec.Symmetric && zero != c.Spec.middle() {
		t.Fatalf("%+v: zero point %d", c.Spec, zero)
	}
	x, y := float64(w)/scale, float64(c.Weight(i, j))/scale
	x = min(max(x, float64(c.Spec.Low-zero)), float64(c.Spec.High-zero))
	if d := math.Abs(x - y); d > most+1e-4 {
		t.Fatalf("%+v: %g is the dequantized value of %g, %g steps away", c.Spec, c.Weight(i, j), w, d)
	}
}

// The scale search has no larger squared error than the full range, and error feedback a small one.
func TestSearchIsNoWorseThanSpan(t *testing.T) {
	const k, n = 96, 40
	w := weightsOf(k, n)
	for _, g := range nearestSpecs() {
		t.Run(fmt.Sprintf("%+v", g), func(t *testing.T) {
			spanned, searched := NewQuantized(k, n, g), NewQuantized(k, n, g)
			g.Feedback = true
			feedbackRows := NewQuantized(k, n, g)
			Nearest(spanned, w)
			MSE(searched, w)
			MSE(feedbackRows, w)
			a, b, c := spanned.squares(w), searched.squares(w), feedbackRows.squares(w)
			if b > a*1.01 || b > c || c > a*1.05 {
				t.Errorf("squared error %g, %g without a search, %g with error feedback", b, a, c)
			}
		})
	}
}

func (c *Quantized) squares(w []float32) (sum float64) {
	for i := range c.K {
		for j := range c.N {
			e := float64(c.Weight(i, j) - w[i*c.N+j])
			sum += e * e
		}
	}
	return sum
}

// Columns that are multiplied by powers of two have the same quantized values, and scales that are multiplied likewise:
// no sum of squares underflows or overflows.
func TestValuesDoNotDependOnTheMagnitude(t *testing.T) {
	const k, n = 75, 21
	p := pool(t, 1)
	for _, g := range nearestSpecs() {
		for name, quantize := range map[string]func(*Quantized, []float32){
			"nearest": Nearest, "MSE": MSE, "HQQ": HQQ,
			"free HQQ": func(c *Quantized, w []float32) { c.Point = make([]float32, len(c.Scale)); HQQ(c, w) },
			"GPTQ": func(c *Quantized, w []float32) {
				h := hessian.New(p, k)
				rows := make([]float32, k*k)
				for i := range k {
					rows[i*k+i] = 1
				}
				h.Add(rows)
				f, err := h.Factor(t.Context(), hessian.Options{Damp: 0.01, Block: g.Block})
				if err != nil {
					t.Fatal(err)
				}
				*c = *GPTQ(p, slices.Clone(w), n, f, g, nil)
			},
		} {
			w := weightsOf(k, n)
			want := NewQuantized(k, n, g)
			quantize(want, w)
			for _, exps := range [][]int{{-60}, {-110}, {60}, {110}, {0, -70, -100, 90}} {
				moved := slices.Clone(w)
				for i := range moved {
					moved[i] = float32(math.Ldexp(float64(w[i]), exps[i%n%len(exps)]))
				}
				got := NewQuantized(k, n, g)
				quantize(got, moved)
				for i := range got.Scale {
					if s := float32(math.Ldexp(float64(want.Scale[i]), exps[i%n%len(exps)])); got.Scale[i] != s && want.Scale[i] != 1 {
						t.Fatalf("%s, %+v, times 2^%v: scale %d is %g, want %g", name, g, exps, i, got.Scale[i], s)
					}
				}
				if !bytes.Equal(got.Values, want.Values) || !slices.Equal(got.Zero, want.Zero) {
					t.Fatalf("%s, %+v, times 2^%v: other values", name, g, exps)
				}
			}
		}
	}
}
