package quantize

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// onnxRuntimePeers pairs our options with those of ONNX Runtime's dynamic quantization. Its uint8 weights are
// asymmetric by default; its tables have one scale.
var onnxRuntimePeers = []struct {
	options []string
	theirs  conform.DynamicOptions
	paths   func(testing.TB) []string
}{
	{nil, conform.DynamicOptions{PerChannel: true}, conform.QuickModels},
	{nil, conform.DynamicOptions{PerChannel: true}, conform.Fixtures},
	{[]string{"per-tensor"}, conform.DynamicOptions{}, conform.Fixtures},
	{[]string{"asymmetric"}, conform.DynamicOptions{PerChannel: true, Asymmetric: true}, conform.Fixtures},
	{[]string{"asymmetric", "weight-type=uint8"},
		conform.DynamicOptions{PerChannel: true, WeightType: "uint8", Asymmetric: true}, conform.QuickModels},
	{[]string{"asymmetric", "weight-type=uint8", "per-tensor"},
		conform.DynamicOptions{WeightType: "uint8", Asymmetric: true}, conform.Fixtures},
	{[]string{"reduce-range"}, conform.DynamicOptions{PerChannel: true, ReduceRange: true}, conform.Fixtures},
	{[]string{"embeddings", "per-tensor"}, conform.DynamicOptions{Ops: []string{"MatMul", "Gemm", "Gather"}},
		conform.Fixtures},
}

// slack is how much lower our SQNR may be, in dB.
const slack = 0.1

// At the same operators, weight type, symmetry and granularity our output SQNR is at least that of ONNX Runtime's own
// tool, wherever that works.
func TestSQNRMatchesONNXRuntime(t *testing.T) {
	many(t)
	w := conform.Start(t)
	compared := 0
	for i, p := range onnxRuntimePeers {
		for _, path := range conform.Part(i, 2, p.paths(t)) {
			t.Run(variant{DynamicInt8{}.Method(), p.options}.String()+" "+label(path), func(t *testing.T) {
				dir := t.TempDir()
				ours, theirs := filepath.Join(dir, "ours.onnx"), filepath.Join(dir, "theirs.onnx")
				variant{DynamicInt8{}.Method(), p.options}.apply(t, path, ours)
				o := p.theirs
				if o.Ops == nil {
					o.Ops = []string{"MatMul", "Gemm"}
				}
				if products(t, ours) == 0 || w.ORTDynamic(path, theirs, o) != nil || products(t, theirs) < products(t, ours) {
					return // it fails, or skips products that we quantize
				}
				peer, err := w.Compare(path, theirs, conform.Options{})
				if err != nil {
					return // its output does not run
				}
				mine, err := w.Compare(path, ours, conform.Options{})
				if err != nil {
					t.Fatal(err)
				}
				compared++
				if got, want := conform.LowestSQNR(mine), conform.LowestSQNR(peer); got < want-slack {
					t.Errorf("%.2f dB, ONNX Runtime's tool has %.2f", got, want)
				}
			})
		}
	}
	if want := 45; compared < want || conform.Exhaustive() && compared < 2*want {
		t.Errorf("only %d comparisons took place", compared)
	}
}

// products counts the integer products in the model at path.
func products(t *testing.T, path string) int {
	t.Helper()
	n := 0
	for m := range opened(t, path).Model.Nodes() {
		if m.Op.Is("MatMulInteger") {
			n++
		}
	}
	return n
}
