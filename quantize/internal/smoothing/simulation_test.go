package smoothing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// product is a model of one MatMul, with weight rows of the given sizes.
func product(t *testing.T, sizes func(i int) float32) (s *pass.Step, w *ir.Value) {
	const k, n = 32, 24
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	r := rand.New(rand.NewPCG(1, 2))
	weights := make([]float32, k*n)
	for i := range weights {
		weights[i] = float32(r.NormFloat64()) * sizes(i/n)
	}
	w = m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{k, n}},
		Source: ir.Mem(kernel.Bytes(weights))})
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 16}, {N: k}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	y := m.Graph.Insert(nil, "MatMul", []*ir.Value{x, w})
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 16}, {N: n}}}
	m.Graph.AddOutput(y)
	eval := ir.NewEval("")
	t.Cleanup(func() { eval.Close() })
	return &pass.Step{Model: m, Eval: eval, Env: pass.Environment{Workers: 1}}, w
}

// Trials are independent of each other and leave the model unchanged.
func TestTrialsDoNotAddUp(t *testing.T) {
	s, w := product(t, func(i int) float32 { return float32(1 + i%7*i%7) })
	gs := groups(rescale.New(s), s.Model.Graph)
	r, err := newSimulation(t.Context(), s, &calibrate.Data{}, gs)
	if err != nil {
		t.Fatal(err)
	}
	was := r.originals[w]
	f := make([]float64, gs[0].channels())
	for i := range f {
		f[i] = float64(1 + i%3)
	}
	none, err := r.decibels(t.Context(), []choice{{}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.decibels(t.Context(), []choice{{factor: f}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.decibels(t.Context(), []choice{{}})
	if err != nil || again != none || other == none || none < 30 {
		t.Errorf("%g dB, with factors %g, again without %g: %v", none, other, again, err)
	}
	r.end()
	if g := s.Model.Graph; w.Const != was || g.First() != g.Last() || g.First().Input(0) != g.Inputs[0] ||
		len(g.Consts()) != 1 {
		t.Errorf("weight changed: %v; first node %s", w.Const != was, g.First().Label())
	}
	if err := s.Model.Verify(); err != nil {
		t.Error(err)
	}
}

// Activations are rounded as DynamicQuantizeLinear does, whose range has zero.
func TestRunsAreRounded(t *testing.T) {
	for _, x := range [][]float32{{2, 5.2, 9.9, 10}, {-3, -2, -1.1}, {-0.7, 0, 0.2, 1.9}} {
		lo, hi := min(0, float64(slices.Min(x))), max(0, float64(slices.Max(x)))
		scale := (hi - lo) / 255
		zero := math.RoundToEven(-lo / scale)
		got := slices.Clone(x)
		roundRun(got)
		for i, v := range x {
			want := (min(max(math.RoundToEven(float64(v)/scale)+zero, 0), 255) - zero) * scale
			if math.Abs(float64(got[i])-want) > 1e-5 {
				t.Errorf("%v: %g is rounded to %g, want %g", x, v, got[i], want)
			}
		}
	}
}

// Errors of trials are those of activations, too: weights that 8 bits represent exactly do not make the outputs exact.
func TestTrialsRoundActivations(t *testing.T) {
	s, w := product(t, func(int) float32 { return 1 })
	x := make([]float32, w.Const.Elems())
	for i := range x {
		x[i] = float32(i%255) - 127
	}
	for i := range w.Const.Shape[1] { // of each column
		x[i] = 127
	}
	w.Const.Source = ir.Floats(x...)
	r, err := newSimulation(t.Context(), s, &calibrate.Data{}, groups(rescale.New(s), s.Model.Graph))
	if err != nil {
		t.Fatal(err)
	}
	db, err := r.decibels(t.Context(), []choice{{}})
	if r.end(); err != nil || db < 30 || db > 60 {
		t.Errorf("%g dB, want those of 8-bit activations: %v", db, err)
	}
}
