package solve

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/engine/op"
)

// A layer is weights K×N and inputs T×K with strongly correlated channels.
type layer struct {
	k, n int
	w, x []float32
}

func newLayer(r *rand.Rand, k, n, t int) *layer {
	l := &layer{k: k, n: n}
	for range k * n {
		l.w = append(l.w, float32(r.NormFloat64()))
	}
	for range t {
		last := 0.0
		for i := range k {
			last = 0.7*last + r.NormFloat64()
			l.x = append(l.x, float32(last*(1+float64(i%5))))
		}
	}
	return l
}

func pool(t testing.TB, workers int) *op.Pool {
	p := op.NewPool(workers)
	t.Cleanup(p.Close)
	return p
}

func (l *layer) hessian(t testing.TB) *hessian.Hessian {
	h := hessian.New(pool(t, 2), l.k)
	h.Add(l.x)
	return h
}

func (l *layer) factor(t testing.TB, o hessian.Options) *hessian.Factor {
	t.Helper()
	f, err := l.hessian(t).Factor(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// damped is the damped Hessian by its definition.
func (l *layer) damped(damp float64) *mat.SymDense {
	h, mean := mat.NewSymDense(l.k, nil), 0.0
	for i := range l.k {
		for j := i; j < l.k; j++ {
			sum := 0.0
			for t := 0; t < len(l.x); t += l.k {
				sum += float64(l.x[t+i]) * float64(l.x[t+j])
			}
			h.SetSym(i, j, sum)
		}
		mean += h.At(i, i) / float64(l.k)
	}
	for i := range l.k {
		h.SetSym(i, i, h.At(i, i)+damp*mean)
	}
	return h
}

// loss is tr(Eᵀ·H·E) of the dequantized weights.
func (l *layer) loss(h mat.Symmetric, weight func(i, j int) float32) float64 {
	sum := 0.0
	for j := range l.n {
		e := mat.NewVecDense(l.k, nil)
		for i := range l.k {
			e.SetVec(i, float64(l.w[i*l.n+j])-float64(weight(i, j)))
		}
		sum += mat.Inner(e, h, e)
	}
	return sum
}

var specs = []Spec{
	{Low: -8, High: 7, Symmetric: true, Block: 8},
	{Low: 0, High: 15, Block: 16},
	{Low: -2, High: 1, Symmetric: true, Block: 32},
	{Low: 0, High: 3, Block: 7},
	{Low: -127, High: 127, Symmetric: true, Block: 1000},
	{Low: 0, High: 255, Block: 40},
}

var orders = []hessian.Options{{Damp: 0.01}, {Damp: 0.1}, {Damp: 0.01, Order: true}}

// roundByInverse is GPTQ as published: with the inverse of the Hessian, from which the row and column of each quantized
// weight are eliminated (Frantar et al. 2022, section 3.1, equations 1 to 3). Scales are given.
func roundByInverse(l *layer, h *mat.SymDense, rows []int, c *Quantized) []int32 {
	quantized := make([]int32, l.k*l.n)
	w := make([]float64, len(l.w))
	for i, v := range l.w {
		w[i] = float64(v)
	}
	left := slices.Clone(rows)
	for len(left) > 0 {
		part := mat.NewDense(len(left), len(left), nil)
		for a, i := range left {
			for b, j := range left {
				part.Set(a, b, h.At(i, j))
			}
		}
		var inverse mat.Dense
		if err := inverse.Inverse(part); err != nil {
			panic(err)
		}
		i := left[0]
		for j := range l.n {
			at := i/c.Spec.Block*l.n + j
			s, z := float64(c.Scale[at]), float64(c.Zero[at])
			value := min(max(math.RoundToEven(w[i*l.n+j]/s)+z, float64(c.Spec.Low)), float64(c.Spec.High))
			quantized[i*l.n+j] = int32(value)
			e := (w[i*l.n+j] - (value-z)*s) / inverse.At(0, 0)
			for b, r := range left {
				w[r*l.n+j] -= e * inverse.At(0, b)
			}
		}
		left = left[1:]
	}
	return quantized
}

// Quantized values equal those of the algorithm with the explicit inverse, except for weights so near the midpoint of
// two levels that floating-point errors decide.
func TestGPTQIsTheAlgorithmWithTheInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		l := newLayer(r, 20+r.IntN(30), 1+r.IntN(9), 200)
		for _, g := range specs {
			for _, o := range orders {
				o.Block = g.Block
				f := l.factor(t, o)
				rows := slices.Clone(f.Order)
				slices.Reverse(rows)
				c := GPTQ(pool(t, 2), l.w, l.n, f, g, nil)
				different := 0
				for i, want := range roundByInverse(l, l.damped(o.Damp), rows, c) {
					if byte(want) != c.Values[i] {
						different++
					}
				}
				if different*50 > len(c.Values) {
					t.Errorf("%+v, %+v: %d of %d quantized values differ", g, o, different, len(c.Values))
				}
			}
		}
	}
}

// nearest rounds to nearest without a Hessian, with scales of the same granularity.
func nearest(t testing.TB, l *layer, g Spec) *Quantized {
	return GPTQ(pool(t, 2), l.w, l.n, flat(l.k), g, nil)
}

// flat is the factor of uncorrelated inputs.
func flat(k int) *hessian.Factor {
	f := &hessian.Factor{K: k, Unit: make([]float32, k*k)}
	for i := range k {
		f.Order, f.Loss = append(f.Order, k-1-i), append(f.Loss, 1)
	}
	return f
}

// The output error is smaller than with round to nearest.
func TestGPTQLosesLessThanNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		l := newLayer(r, 64+r.IntN(64), 20+r.IntN(200), 400)
		h := l.damped(0.01)
		for _, g := range specs {
			for _, o := range orders {
				o.Block = g.Block
				got, want := l.loss(h, GPTQ(pool(t, 2), l.w, l.n, l.factor(t, o), g, nil).Weight),
					l.loss(h, nearest(t, l, g).Weight)
				if got > want {
					t.Errorf("%+v, %+v: loss %.4g, rounded to nearest %.4g", g, o, got, want)
				}
			}
		}
	}
}

// On a tiny problem GPTQ is near the optimum by brute force, and never below it.
func TestGPTQBesideBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	got, best, rounded := 0.0, 0.0, 0.0
	g := Spec{Low: -2, High: 1, Symmetric: true, Block: 5}
	for range 30 {
		l := newLayer(r, 5, 1, 50)
		h := l.damped(0.01)
		c := GPTQ(pool(t, 1), l.w, l.n, l.factor(t, hessian.Options{Damp: 0.01, Order: true, Block: g.Block}), g, nil)
		least := math.Inf(1)
		for n := range 1 << (2 * l.k) {
			least = min(least, l.loss(h, func(i, _ int) float32 { return float32(n>>(2*i)&3-2) * c.Scale[0] }))
		}
		loss := l.loss(h, c.Weight)
		if loss < least*(1-1e-9) {
			t.Fatalf("loss %v is below the minimum, %v", loss, least)
		}
		got, best, rounded = got+loss, best+least, rounded+l.loss(h, func(i, _ int) float32 {
			return float32(g.round(l.w[i], 1/c.Scale[0], 0)) * c.Scale[0]
		})
	}
	if got > (best+rounded)/2 {
		t.Errorf("loss %v, minimum %v, rounded to nearest with the same scales %v", got, best, rounded)
	}
}

// With uncorrelated inputs there is no error feedback: each weight is rounded to nearest.
func TestWithoutCorrelationsNearestIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	l := newLayer(r, 40, 30, 1)
	for _, g := range specs {
		c := nearest(t, l, g)
		for i := range l.w {
			at := i/l.n/g.Block*l.n + i%l.n
			if want := g.round(l.w[i], 1/c.Scale[at], c.Zero[at]) + c.Zero[at]; byte(want) != c.Values[i] {
				t.Fatalf("%+v: weight %v is quantized to %d, nearest is %d", g, l.w[i], c.Values[i], want)
			}
		}
	}
}

// Weights equals Weight element by element.
func TestWeights(t *testing.T) {
	l := newLayer(rand.New(rand.NewPCG(15, 16)), 37, 11, 1)
	for _, g := range specs {
		c, all := nearest(t, l, g), make([]float32, len(l.w))
		c.Weights(pool(t, 2), all)
		for i, w := range all {
			if w != c.Weight(i/l.n, i%l.n) {
				t.Fatalf("%+v: element %d is %v, want %v", g, i, w, c.Weight(i/l.n, i%l.n))
			}
		}
	}
}

// Results are deterministic for any number of workers and any division of the samples into calls.
func TestWorkersChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	l := newLayer(r, 300, 280, 600)
	var first *Quantized
	for _, workers := range []int{1, 2, 5} {
		h := hessian.New(pool(t, workers), l.k)
		h.Add(l.x[:workers*l.k])
		h.Add(l.x[workers*l.k:])
		f, err := h.Factor(t.Context(), hessian.Options{Damp: 0.01, Order: true, Block: specs[0].Block})
		if err != nil {
			t.Fatal(err)
		}
		c := GPTQ(pool(t, workers), l.w, l.n, f, specs[0], nil)
		if first == nil {
			first = c
		}
		if !bytes.Equal(c.Values, first.Values) || !slices.Equal(c.Scale, first.Scale) {
			t.Errorf("quantized values differ with %d workers", workers)
		}
	}
}

// Inputs that are always zero, zero weights, fewer samples than inputs: dequantized weights stay near the weights.
func TestDegenerate(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	dead, few, none := newLayer(r, 24, 6, 100), newLayer(r, 24, 6, 3), newLayer(r, 24, 6, 100)
	for t := 0; t < len(dead.x); t += dead.k {
		dead.x[t+3] = 0
	}
	clear(none.x)
	zero := newLayer(r, 24, 6, 100)
	clear(zero.w)
	for name, l := range map[string]*layer{"an input that is always zero": dead, "few samples": few,
		"no inputs but zero": none, "no weights but zero": zero} {
		c := GPTQ(pool(t, 2), l.w, l.n, l.factor(t, hessian.Options{Damp: 0.01, Order: true, Block: 24}),
			Spec{Low: -127, High: 127, Symmetric: true, Block: 24}, nil)
		for i, w := range l.w {
			if got := c.Weight(i/l.n, i%l.n); math.Abs(float64(got-w)) > 0.5 || math.IsNaN(float64(got)) {
				t.Errorf("%s: weight %v became %v", name, w, got)
			}
		}
	}
}

func BenchmarkGPTQ(b *testing.B) {
	r := rand.New(rand.NewPCG(13, 14))
	p := pool(b, 2)
	for _, s := range []struct{ k, n int }{{768, 3072}, {3072, 768}} {
		l := newLayer(r, s.k, s.n, 1024)
		b.Run("", func(b *testing.B) {
			for b.Loop() {
				h := hessian.New(p, l.k)
				h.Add(l.x)
				f, err := h.Factor(b.Context(), hessian.Options{Damp: 0.01, Order: true, Block: 32})
				if err != nil {
					b.Fatal(err)
				}
				GPTQ(p, l.w, l.n, f, Spec{Low: -8, High: 7, Symmetric: true, Block: 32}, nil)
			}
		})
	}
}

// Pruned elements are exactly zero, the others compensate their errors, and scales fit the others only.
func TestGPTQPrunes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	l := newLayer(r, 96, 150, 400)
	pruned, zeroed := make([]bool, len(l.w)), slices.Clone(l.w)
	for i := range pruned {
		if pruned[i] = r.IntN(2) == 0; pruned[i] {
			zeroed[i] = 0
		}
	}
	h := l.damped(0.01)
	for _, g := range specs {
		for _, o := range orders {
			o.Block = g.Block
			f := l.factor(t, o)
			c, apart := GPTQ(pool(t, 2), l.w, l.n, f, g, pruned), GPTQ(pool(t, 2), zeroed, l.n, f, g, pruned)
			for i, p := range pruned {
				if w := c.Weight(i/l.n, i%l.n); p && w != 0 {
					t.Fatalf("%+v, %+v: pruned element %d is %g", g, o, i, w)
				}
			}
			if joint, other := l.loss(h, c.Weight), l.loss(h, apart.Weight); joint > 0.9*other {
				t.Errorf("%+v, %+v: loss %.4g, without compensation of the pruned elements %.4g", g, o, joint, other)
			}
		}
	}
}

// Columns that are quantized some at a time have the results of all at once.
func TestGPTQOfColumns(t *testing.T) {
	l := newLayer(rand.New(rand.NewPCG(5, 0)), 40, 2*hessian.Wide+9, 60)
	f := l.factor(t, hessian.Options{Damp: 0.01, Order: true, Block: 16})
	spec := Spec{Low: -8, High: 7, Symmetric: true, Block: 16}
	want, got := GPTQ(pool(t, 2), slices.Clone(l.w), l.n, f, spec, nil), NewQuantized(l.k, l.n, spec)
	for col := 0; col < l.n; col += hessian.Wide {
		n := min(hessian.Wide, l.n-col)
		var w []float32
		for i := range l.k {
			w = append(w, l.w[i*l.n+col:][:n]...)
		}
		got.SetColumns(col, GPTQ(pool(t, 2), w, n, f, spec, nil))
	}
	if !bytes.Equal(got.Values, want.Values) || !slices.Equal(got.Scale, want.Scale) ||
		!slices.Equal(got.Zero, want.Zero) {
		t.Error("results differ from those of all columns")
	}
}

// round is x rounded to nearest, minus the zero point.
func (g Spec) round(x, inverse float32, zero int32) int32 {
	v := math.RoundToEven(float64(x * inverse))
	return int32(min(max(v, float64(g.Low-zero)), float64(g.High-zero)))
}
