package quantize

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// stable are models whose SQNR hardly depends on the noise of their weights: a transformer, recurrent layers, and convolutions.
var stable = []string{"byte_bidi_lstm", "espcn_float", "gpt2_tiny_fp32"}

// perturbed saves the model at path with noise of a tenth of the standard deviation of each weight: the quantization errors of one model
// are one draw, in which round to nearest may be better by chance.
func perturbed(t *testing.T, path string, seed uint64) string {
	t.Helper()
	m, e, r := quanttest.Open(t, path), ir.NewEval(""), rand.New(rand.NewPCG(seed, 1))
	defer e.Close()
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if v.Const.DType != ir.Float || len(v.Const.Shape) < 2 {
				continue
			}
			b, err := e.ReadAll(t.Context(), v.Const)
			if err != nil {
				t.Fatal(err)
			}
			x, squares := append([]float32(nil), kernel.Words[float32](b)...), 0.0
			for _, w := range x {
				squares += float64(w) * float64(w)
			}
			noise := float32(0.1 * math.Sqrt(squares/float64(len(x))))
			for i := range x {
				x[i] += noise * float32(r.NormFloat64())
			}
			v.SetConst(quanttest.TensorOf(ir.Float, v.Const.Shape, x))
		}
	}
	return quanttest.Save(t, m, e)
}

// outputsOn are the elements of all float32 outputs of the model at path, by output, on random inputs.
func outputsOn(t *testing.T, path string, seed uint64) map[string][]float32 {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := engine.Open(t.Context(), f.Model, engine.Options{Workers: 2})
	if err != nil {
		t.Skip(err)
	}
	defer e.Close()
	set, err := job.Data{Seed: seed}.Open(f.Model, 2)
	if err != nil {
		t.Skip(err)
	}
	defer set.Close()
	outputs := map[string][]float32{}
	for b, err := range set.Batches(context.Background(), dataset.Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Run(t.Context(), b.Inputs, nil)
		if err != nil {
			t.Skip(err)
		}
		for name, a := range out {
			if a.DType == ir.Float && a.Kind == ir.Dense {
				outputs[name] = append(outputs[name], ir.View[float32](a)...)
			}
		}
	}
	return outputs
}

// lowest is the lowest SQNR of the outputs in dB, up to 100.
func lowest(want, got map[string][]float32) float64 {
	low := 100.0
	for name, x := range want {
		signal, noise := 1e-30, 1e-30
		for i, v := range x {
			signal, noise = signal+float64(v)*float64(v), noise+float64(v-got[name][i])*float64(v-got[name][i])
		}
		low = min(low, 10*math.Log10(signal/noise))
	}
	return low
}

// The outputs of 4-bit weights have no lower SQNR than those of round to nearest in as many bytes, over block sizes and 12 draws of noise and
// inputs: the mean of the differences is not below -0.3 dB by more than two standard errors.
func TestOutputsAreNoWorseThanRoundToNearest(t *testing.T) {
	many(t)
	for i, path := range conform.QuickModels(t) {
		if !conform.Exhaustive() && !slices.Contains(stable, label(path)) {
			continue
		}
		t.Run(label(path), func(t *testing.T) {
			var differences []float64
			for seed := range uint64(12) {
				source := perturbed(t, path, seed)
				want := outputsOn(t, source, seed)
				for _, block := range conform.Sampled(i+int(seed), []string{"block=16", "block=32", "block=64", "block=128"}) {
					quantized := func(options ...string) float64 {
						out := filepath.Join(t.TempDir(), "out.onnx")
						variant{WeightInt4{}.Method(), append(options, block)}.apply(t, source, out)
						return lowest(want, outputsOn(t, out, seed))
					}
					differences = append(differences, quantized()-quantized("search=minmax"))
				}
			}
			mean, squares, n := 0.0, 0.0, float64(len(differences))
			for _, d := range differences {
				mean += d / n
			}
			for _, d := range differences {
				squares += (d - mean) * (d - mean)
			}
			deviation := math.Sqrt(squares / (n - 1) / n)
			t.Logf("%+.2f ± %.2f dB", mean, deviation)
			if mean+2*deviation < -0.3 {
				t.Errorf("%.2f ± %.2f dB below round to nearest", -mean, deviation)
			}
		})
	}
}
