package smoothing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// drawn is a random product with channels of different sizes, stored K × N or N × K, and runs of its input.
func drawn(t *testing.T, seed uint64, transposed bool) (g *group, w []float64, xs [][]float64) {
	const k, n, rows = 40, 24, 16
	r := rand.New(rand.NewPCG(seed, 1))
	sizes := make([]float64, k)
	for i := range sizes {
		sizes[i] = math.Exp(1.5 * r.NormFloat64())
	}
	w = make([]float64, k*n)
	stored := make([]float32, k*n)
	for i := range k * n {
		at := i
		if transposed {
			at = i%n*k + i/n
		}
		stored[at] = float32(r.NormFloat64() / sizes[i/n] * math.Exp(0.5*r.NormFloat64()))
		w[i] = float64(stored[at])
	}
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	shape, attr := []int64{k, n}, ir.IntAttr("transB", 0)
	if transposed {
		shape, attr = []int64{n, k}, ir.IntAttr("transB", 1)
	}
	v := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{Name: "w", DType: ir.Float, Shape: shape},
		Source: ir.Mem(kernel.Bytes(stored))})
	in := m.Graph.NewValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, in)
	m.Graph.AddOutput(m.Graph.Insert(nil, "Gemm", []*ir.Value{in, v}, attr))
	eval := ir.NewEval("")
	t.Cleanup(func() { eval.Close() })
	s := &pass.Step{Model: m, Eval: eval, Env: pass.Environment{Workers: 1}}
	g = groups(rescale.New(s), m.Graph)[0]
	for range 3 {
		x, a := make([]float64, rows*k), ir.NewArray(ir.Float, rows, k)
		for i := range x {
			f := float32(r.NormFloat64() * sizes[i%k])
			ir.View[float32](a)[i], x[i] = f, float64(f)
		}
		g.seen.add(a, k)
		xs = append(xs, x)
	}
	return g, w, xs
}

// measured is the squared error, relative to the rows, of the product with both factors quantized to 8 bits.
func measured(f, w []float64, xs [][]float64) float64 {
	k := len(f)
	n := len(w) / k
	rounded := make([]float64, len(w))
	for col := range n {
		top := 0.0
		for i := range k {
			top = max(top, math.Abs(w[i*n+col])*f[i])
		}
		for i := range k {
			rounded[i*n+col] = math.RoundToEven(w[i*n+col]*f[i]/(top/127)) * top / 127
		}
	}
	sum := 0.0
	for _, x := range xs {
		lo, hi := 0.0, 0.0
		for i, v := range x {
			lo, hi = min(lo, v/f[i%k]), max(hi, v/f[i%k])
		}
		step := (hi - lo) / 255
		for row := range len(x) / k {
			size := 0.0
			for _, v := range x[row*k:][:k] {
				size += v * v
			}
			for col := range n {
				e := 0.0
				for i := range k {
					v := x[row*k+i]
					e += math.RoundToEven(v/f[i]/step)*step*rounded[i*n+col] - v*w[i*n+col]
				}
				sum += e * e / size
			}
		}
	}
	return sum
}

// The expected errors match measured ones, and the chosen alpha is close to the optimum.
func TestExpectedErrorsMatchMeasuredErrors(t *testing.T) {
	for seed := range uint64(6) {
		g, w, xs := drawn(t, seed, seed%2 == 1)
		s, err := g.weights(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var fs [][]float64
		best := math.Inf(1)
		for _, a := range alphas {
			f := g.seen.factors(s.largest, a)
			fs = append(fs, f)
			best = min(best, measured(f, w, xs))
		}
		errs, err := g.errors(t.Context(), fs, s)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range fs {
			if got := errs[i] / 12 / measured(f, w, xs); got < 0.7 || got > 1.4 {
				t.Errorf("seed %d, alpha %g: expected error is %.2f times the measured one", seed, alphas[i], got)
			}
		}
		ch, err := g.search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ch.factor == nil || measured(ch.factor, w, xs) > 1.2*best {
			t.Errorf("seed %d: alpha %g is not close to the optimum", seed, ch.alpha)
		}
	}
}
