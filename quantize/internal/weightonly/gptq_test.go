package weightonly

import (
	"context"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

const fixtures = "../../../fixtures/"

// matrices are all matrices of products of the model at path, in blocks of 16 rows, with a context to quantize them in.
func matrices(t *testing.T, path string) (*pass.Step, []*matrix) {
	t.Helper()
	step := &pass.Step{Model: quanttest.Open(t, path), Eval: ir.NewEval(t.TempDir()), Env: pass.Environment{Workers: 2}}
	t.Cleanup(func() { step.Eval.Close() })
	var ls []*matrix
	for _, w := range weights.Find(step, false) {
		for _, s := range w.Consumers {
			if s.Side == weights.Right && len(s.Shape) == 2 && len(w.Consumers) == 1 {
				ls = append(ls, &matrix{weight: w.Base, node: s.Node, k: int(s.Shape[0]), n: int(s.Shape[1]),
					transposed: s.Transposed, spec: solve.Spec{Low: -8, High: 7, Symmetric: true, Block: 16,
						Half: w.Base.Const.DType == ir.Float16}})
			}
		}
	}
	return step, ls
}

// sqnr is that of the model's outputs, on samples that GPTQ did not use, with quantized weights.
func sqnr(t *testing.T, s *pass.Step, ls []*matrix, quantized func(l *matrix) *solve.Quantized) float64 {
	t.Helper()
	const samples = fixtures + "transformer_tokens.npz"
	before, pool := quanttest.OutputsOf(t, samples, s.Model), op.NewPool(2)
	defer pool.Close()
	for _, l := range ls {
		original := l.weight.Const
		w := make([]float32, original.Elems())
		quantized(l).Weights(pool, w)
		l.weight.SetConst(&ir.Tensor{Spec: original.Spec, Source: ir.Mem(l.constant(w, l.k, l.n))})
		defer l.weight.SetConst(original)
	}
	var signal, noise float64
	for i, y := range quanttest.OutputsOf(t, samples, s.Model) {
		signal += float64(before[i]) * float64(before[i])
		noise += float64(before[i]-y) * float64(before[i]-y)
	}
	return 10 * math.Log10(signal/noise)
}

// float16Model is the transformer computing in float16.
func float16Model(t *testing.T) string {
	t.Helper()
	m, e := quanttest.Open(t, fixtures+"transformer.onnx"), ir.NewEval(t.TempDir())
	t.Cleanup(func() { e.Close() })
	if _, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 2, Precheck: true},
		[]pass.Options{toFloat16{}}); err != nil {
		t.Fatal(err)
	}
	return quanttest.Save(t, m, e)
}

type toFloat16 struct{ pass.Selection }

func (toFloat16) Method() *pass.Method { return &pass.Method{Name: "float16", Stage: pass.Quantize} }

func (toFloat16) Run(ctx context.Context, s *pass.Step) error {
	return (&float.Converter{HalfType: &float.Binary16, Compute: true, KeepIO: true}).Run(ctx, s)
}

// Outputs on held-out samples are nearer to the original's than with weights rounded to nearest.
func TestGPTQBeatsRoundToNearest(t *testing.T) {
	t.Run("float32", func(t *testing.T) { beatsRoundToNearest(t, fixtures+"transformer.onnx") })
	t.Run("float16", func(t *testing.T) { beatsRoundToNearest(t, float16Model(t)) })
}

func beatsRoundToNearest(t *testing.T, path string) {
	s, ls := matrices(t, path)
	g := &GPTQ{Data: calibrate.Data{Source: dataset.Source{Samples: pass.Samples{Path: fixtures + "transformer_tokens.npz",
		Limit: 16}}}, ActOrder: true, Damp: 0.01}
	unsupported, err := g.solve(t.Context(), s, ls)
	if err != nil || len(unsupported) > 0 {
		t.Fatalf("unsupported %v: %v", unsupported, err)
	}
	got := sqnr(t, s, ls, func(l *matrix) *solve.Quantized {
		quantized := solve.NewQuantized(l.k, l.n, l.spec)
		if err := l.load(quantized, 0, 0); err != nil {
			t.Fatal(err)
		}
		return quantized
	})
	want := sqnr(t, s, ls, func(l *matrix) *solve.Quantized {
		quantized := solve.NewQuantized(l.k, l.n, l.spec)
		w, err := (&gptqRun{step: s}).read(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		solve.MSE(quantized, w)
		return quantized
	})
	if got <= want+1 {
		t.Errorf("SQNR %.2f dB, rounded to nearest %.2f dB", got, want)
	}
}
