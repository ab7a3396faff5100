package quantize

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// awq is the method with AWQ.
var awq = variant{WeightInt4{}.Method(), []string{"algo=awq", "data=" + tokens, "limit=16"}}

// Every output is valid, smaller, of the same interface, and runs where the original does.
func TestAWQOutputs(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"mlp", "cnn", "gemm", "chains", "function", "shared", "subgraph_if", "recurrent"} {
		t.Run(name, func(t *testing.T) { try(t, w, variant{WeightInt4{}.Method(), []string{"algo=awq"}}, fixture(name)) })
	}
	t.Run("transformer", func(t *testing.T) { try(t, w, awq, fixture("transformer")) })
}

// unevenTransformer saves the transformer with some gains of normalizations much larger than others, like those of
// trained models.
func unevenTransformer(t *testing.T) string {
	t.Helper()
	m := opened(t, fixture("transformer")).Model
	e := ir.NewEval("")
	defer e.Close()
	for n := range m.Graph.Nodes() {
		if n.Op.Type != "LayerNormalization" {
			continue
		}
		b, err := e.ReadAll(t.Context(), n.Input(1).Const)
		if err != nil {
			t.Fatal(err)
		}
		gain := append([]float32(nil), kernel.Words[float32](b)...)
		for i := range gain {
			gain[i] *= float32(math.Exp(1.5 * math.Sin(float64(i*i))))
		}
		n.Input(1).SetConst(&ir.Tensor{Spec: n.Input(1).Const.Spec, Source: ir.Floats(gain...)})
	}
	path := filepath.Join(t.TempDir(), "loud.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: e}); err != nil {
		t.Fatal(err)
	}
	return path
}

// changes reports whether a constant whose name contains part was changed.
func changes(r *job.Result, part string) bool {
	for _, row := range r.Report.Ledger {
		if strings.Contains(row.Tensor, part) && row.Status == pass.Changed.String() {
			return true
		}
	}
	return false
}

// With inputs of different magnitude, the SQNR on held-out samples is higher than with round to nearest, and the ledger
// has the scaled gains.
func TestAWQRaisesOutputSQNR(t *testing.T) {
	path := unevenTransformer(t)
	dir := t.TempDir()
	before := quanttest.OutputsOf(t, tokens, opened(t, path).Model)
	sqnr := func(v variant) float64 {
		out := filepath.Join(dir, strings.Join(v.options, "")[:8]+".onnx")
		r := v.apply(t, path, out)
		if gains := changes(r, "norm1"); v.options[0] == "algo=awq" != gains {
			t.Errorf("%s: gains changed: %v", v, gains)
		}
		var signal, noise float64
		for i, y := range quanttest.OutputsOf(t, tokens, opened(t, out).Model) {
			signal += float64(before[i]) * float64(before[i])
			noise += float64(before[i]-y) * float64(before[i]-y)
		}
		return 10 * math.Log10(signal/noise)
	}
	if got, want := sqnr(awq), sqnr(variant{WeightInt4{}.Method(), []string{"algo=rtn"}}); got < want+0.5 {
		t.Errorf("SQNR %.2f dB, rounded to nearest %.2f dB", got, want)
	}
}
