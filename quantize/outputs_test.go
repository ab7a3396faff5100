package quantize

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A comparison is a variant on one model, compared with the original.
type comparison struct {
	variant
	path, out string
	outputs   []conform.Output // nil where ONNX Runtime does not run the original
}

// try applies v to the model at path and checks the requirements of every output. It returns nil if nothing was
// changed.
func try(t *testing.T, w *conform.Worker, v variant, path string) *comparison {
	t.Helper()
	r := &comparison{variant: v, path: path, out: filepath.Join(t.TempDir(), "out.onnx")}
	rows := changed(v.apply(t, path, r.out))
	before, after := opened(t, path), opened(t, r.out)
	if rows == 0 {
		if !before.External() && !bytes.Equal(read(t, path), read(t, r.out)) {
			t.Errorf("%s: nothing was changed, but the bytes differ", v)
		}
		return nil
	}
	if after.Size() >= before.Size() {
		t.Errorf("%s: %d bytes became %d", v, before.Size(), after.Size())
	}
	r.sameInterface(t, before.Model, after.Model)
	r.sameNames(t, before.Model, after.Model)
	r.valid(t, w)
	r.runs(t, w)
	return r
}

func opened(t testing.TB, path string) *onnx.File {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameInterface compares inputs and outputs; weights that were inputs may be removed.
func (r *comparison) sameInterface(t *testing.T, before, after *ir.Model) {
	t.Helper()
	for _, s := range []struct {
		what      string
		want, got []*ir.Value
	}{
		{"inputs", before.Graph.Inputs, after.Graph.Inputs},
		{"outputs", before.Graph.Outputs, after.Graph.Outputs},
	} {
		if want, got := signature(s.want), signature(s.got); !slices.Equal(want, got) {
			t.Errorf("%s: %s were %v, are %v", r, s.what, want, got)
		}
	}
}

func signature(vs []*ir.Value) []string {
	var sig []string
	for _, v := range vs {
		if v.Const != nil {
			continue
		}
		s := v.Name
		if v.Type != nil {
			s += fmt.Sprintf(" %s%v", v.Type.Elem, v.Type.Shape)
		}
		sig = append(sig, s)
	}
	return sig
}

// layerOps are the operators whose outputs users look up by name.
var layerOps = []string{"MatMul", "Gemm", "Gather", "Conv", "ConvTranspose", "LSTM", "GRU", "Add", "Relu"}

func (r *comparison) sameNames(t *testing.T, before, after *ir.Model) {
	t.Helper()
	names := map[string]bool{}
	for v := range after.Values() {
		names[v.Name] = true
	}
	for n := range before.Nodes() {
		if slices.ContainsFunc(layerOps, n.Op.Is) && n.Outputs[0] != nil && !names[n.Outputs[0].Name] {
			t.Errorf("%s: the output of %s has lost its name, %s", r, n.Label(), n.Outputs[0].Name)
		}
	}
}

func (r *comparison) valid(t *testing.T, w *conform.Worker) {
	t.Helper()
	for _, full := range []bool{true, false} {
		if w.Check(r.path, full) != nil {
			continue
		}
		if err := w.Check(r.out, full); err != nil {
			t.Errorf("%s: full check %v: %v", r, full, err)
		}
		return
	}
}

func (r *comparison) runs(t *testing.T, w *conform.Worker) {
	t.Helper()
	outputs, err := w.Compare(r.path, r.out, conform.Options{})
	if err == nil {
		r.outputs = outputs
		return
	}
	if _, before := w.Run(r.path, conform.Options{}); before == nil {
		t.Errorf("%s: %v", r, err)
	}
}

// unstable are models whose outputs on random inputs are no evidence of quality: they are saturated, or differences of
// nearly equal numbers. Restored models and ONNX Runtime's own tools are the reference for those.
var unstable = []string{"acasxu_1_1", "acasxu_3_3", "acasxu_4_5", "acasxu_5_9", "basic_pitch", "fastestdet",
	"fsanet_1x1", "ppocr_v3_det", "silero_vad", "yolox_nano", "yunet_n_320"}

// Every output is valid, smaller, of the same interface, runs where the original does, and
// comes close to it.
func TestOutputs(t *testing.T) {
	defaults := []floored{
		{variant{DynamicInt8{}.Method(), nil}, 22},
		{variant{WeightInt8{}.Method(), nil}, 20},
		{variant{Float16{}.Method(), nil}, 40},
	}
	options := []floored{
		{variant{DynamicInt8{}.Method(), []string{"asymmetric", "embeddings"}}, 22},
		{variant{DynamicInt8{}.Method(), []string{"weight-type=uint8", "reduce-range", "embeddings"}}, 20},
		{variant{DynamicInt8{}.Method(), []string{"asymmetric", "reduce-range", "weight-type=uint8"}}, 20},
		{variant{DynamicInt8{}.Method(), []string{"asymmetric", "per-tensor"}}, 12},
		{variant{WeightInt8{}.Method(), []string{"asymmetric", "reduce-range"}}, 20},
		{variant{WeightInt8{}.Method(), []string{"weight-type=uint8"}}, 22},
		{variant{WeightInt8{}.Method(), []string{"asymmetric", "weight-type=uint8", "per-tensor"}}, 12},
	}
	w := conform.Start(t)
	for i, path := range conform.Fixtures(t) {
		for _, c := range slices.Concat(defaults, conform.Sampled(i, options)) {
			c.check(t, w, path)
		}
	}
	for i, path := range conform.RealModels(t) {
		for _, c := range conform.Sampled(i, defaults) {
			c.check(t, w, path)
		}
	}
}

// A floored variant has outputs of at least a SQNR in dB, on models that are not unstable.
type floored struct {
	variant
	floor float64
}

func (b floored) check(t *testing.T, w *conform.Worker, path string) {
	t.Run(b.String()+" "+label(path), func(t *testing.T) {
		r := try(t, w, b.variant, path)
		if r == nil || slices.Contains(unstable, label(path)) {
			return
		}
		if s := conform.LowestSQNR(r.outputs); s < b.floor {
			t.Errorf("%.1f dB, want %.1f", s, b.floor)
		}
	})
}
