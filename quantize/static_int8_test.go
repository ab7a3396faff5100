package quantize

import (
	"bytes"
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Every model with layers is valid, smaller, and ONNX Runtime's outputs match the embedded engine: each fixture with a
// third of the options, half of the real models, and all detectors.
func TestStaticOutputs(t *testing.T) {
	many(t)
	w := conform.Start(t)
	for i, path := range conform.Fixtures(t) {
		for _, options := range conform.Part(i, 3, append(staticOptions, nil)) {
			checkStatic(t, w, variant{StaticInt8{}.Method(), options}, path)
		}
	}
	for i, path := range conform.QuickModels(t) {
		if _, detector := detectors[label(path)]; i%2 == 1 && !detector && !conform.Exhaustive() {
			continue
		}
		var options []string
		if slices.Contains(pixelModels, label(path)) {
			options = []string{"data=" + filepath.Join(filepath.Dir(path), "test_data_set_0")}
		}
		checkStatic(t, w, variant{StaticInt8{}.Method(), options}, path)
	}
	for name := range detectors {
		if !slices.ContainsFunc(conform.QuickModels(t), func(path string) bool { return label(path) == name }) {
			t.Errorf("%s is not tested", name)
		}
	}
}

// detectors are models whose accuracy ONNX Runtime's own tool destroys, with the maximum size of the result as a
// fraction: they stay close to the original.
var detectors = map[string]float64{"yunet_n_320": 0.45, "yolox_nano": 0.30, "fastestdet": 0.36}

var staticOptions = [][]string{
	{"activation-sqnr=0", "calibrator=minmax"},
	{"activation-sqnr=0", "activation-type=int8", "per-tensor"},
	{"activation-sqnr=0", "activation-symmetric", "asymmetric", "per-tensor", "float-bias"},
	{"activation-sqnr=0", "weight-type=uint8", "reduce-range", "no-bias-correction"},
	{"activation-type=int16", "calibrator=percentile"},
}

func checkStatic(t *testing.T, w *conform.Worker, v variant, path string) {
	t.Run(v.String()+" "+label(path), func(t *testing.T) {
		r := &comparison{variant: v, path: path, out: filepath.Join(t.TempDir(), "out.onnx")}
		if changed(r.apply(t, path, r.out)) > 0 {
			r.valid(t, w)
			r.runs(t, w)
		}
		most, detector := detectors[label(path)]
		if r.outputs == nil {
			if detector {
				t.Error("no outputs to compare")
			}
			return
		}
		s := conform.LowestSQNR(r.outputs)
		if detector {
			if ratio := float64(opened(t, r.out).Size()) / float64(opened(t, path).Size()); s < 15 || ratio > most {
				t.Errorf("%.1f dB at %.3f of the size, want 15 at %.2f", s, ratio, most)
			}
		} else if s < 8 && !slices.Contains(unstable, label(path)) {
			t.Errorf("%.1f dB", s)
		}
		r.agrees(t, w)
	})
}

// pixelModels are models whose real inputs differ from random ones: pixels up to 255, byte values.
var pixelModels = []string{"magika_v3_3", "mlperf_resnet8", "mnist_cntk"}

// agrees compares the embedded engine with ONNX Runtime. Where both round one value to different neighbours, they
// differ by a step, and later nodes by more.
func (r *comparison) agrees(t *testing.T, w *conform.Worker) {
	t.Helper()
	theirs, err := w.Run(r.out, conform.Options{Inputs: recordedInputs(r.path)})
	if err != nil || recordedInputs(r.path) == nil {
		return
	}
	f := opened(t, r.out)
	set, err := dataset.Open(filepath.Join(filepath.Dir(r.path), "test_data_set_0"), dataset.Inputs(f.Model.Graph),
		dataset.Outputs(f.Model.Graph), dataset.Options{Limit: 1})
	if err != nil {
		return // recorded for other inputs
	}
	defer set.Close()
	s, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	for b, err := range set.Batches(context.Background(), dataset.Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		ours, err := s.Run(context.Background(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range theirs {
			if a := ours[o.Name]; a != nil && a.DType == ir.Float && len(a.Data) == len(o.Data) {
				near(t, o.Name, ir.View[float32](a), ir.View[float32](&ir.Array{DType: ir.Float, Data: o.Data}))
			}
		}
	}
}

// near checks for 20 dB between two runs of one quantized model: only ties may be rounded differently.
func near(t *testing.T, name string, got, want []float32) {
	t.Helper()
	signal, noise := 0.0, 0.0
	for i := range want {
		signal += float64(want[i]) * float64(want[i])
		noise += (float64(want[i]) - float64(got[i])) * (float64(want[i]) - float64(got[i]))
	}
	if noise > signal*math.Pow(10, -2) {
		t.Errorf("output %q: the engines are %.1f dB apart", name, 10*math.Log10(signal/noise))
	}
}

func recordedInputs(path string) []string {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_0", "input_*.pb"))
	return found
}

// Between layers ONNX Runtime computes only with quantized values.
func TestStaticFormsFuse(t *testing.T) {
	w := conform.Start(t)
	for _, c := range []struct {
		options []string
		fixture string
		want    map[string]int
		none    []string
	}{
		{[]string{"activation-sqnr=0"}, "cnn", map[string]int{"com.microsoft.QLinearConv": 3},
			[]string{"Conv", "Gemm", "MatMul", "com.microsoft.FusedConv", blockedConv}},
		{[]string{"activation-sqnr=0", "float-bias"}, "cnn", map[string]int{"com.microsoft.QLinearConv": 3},
			[]string{"Conv", "Gemm", blockedConv}},
		{[]string{"activation-sqnr=0", "activation-type=int8"}, "cnn", map[string]int{"com.microsoft.QLinearConv": 3},
			[]string{"Conv", "Gemm", blockedConv}},
		{[]string{"activation-sqnr=0"}, "mlp", map[string]int{}, []string{"MatMul", "Gemm", "com.microsoft.FusedMatMul"}},
		{[]string{"activation-sqnr=0"}, "opset7", map[string]int{}, []string{"MatMul", "Gemm", "Conv"}},
	} {
		ops := optimizedOps(t, w, variant{StaticInt8{}.Method(), c.options}, c.fixture)
		for op, n := range c.want {
			if ops[op] != n {
				t.Errorf("%s %v: %d %s, want %d: %v", c.fixture, c.options, ops[op], op, n, ops)
			}
		}
		for _, op := range c.none {
			if ops[op] > 0 {
				t.Errorf("%s %v: %d %s compute in float: %v", c.fixture, c.options, ops[op], op, ops)
			}
		}
	}
}

// Saved ranges give the same model again, without samples.
func TestSavedRanges(t *testing.T) {
	dir := t.TempDir()
	ranges, a, b := filepath.Join(dir, "r.json"), filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")
	variant{StaticInt8{}.Method(), []string{"save-ranges=" + ranges, "data=" + filepath.Join(
		"..", "fixtures", "digits_train.npz"), "calibrate=16"}}.apply(t, fixture("cnn"), a)
	variant{StaticInt8{}.Method(), []string{"ranges=" + ranges}}.apply(t, fixture("cnn"), b)
	if !bytes.Equal(payloads(t, a), payloads(t, b)) {
		t.Error("weights, biases or scales differ")
	}
}

// payloads are the constants of a model, one after another.
func payloads(t *testing.T, path string) []byte {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := ir.NewEval("")
	defer e.Close()
	var all []byte
	for _, v := range f.Model.Graph.Consts() {
		b, err := e.ReadAll(context.Background(), v.Const)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// Each weight has one ledger row.
func TestStaticLedgerNamesEveryWeight(t *testing.T) {
	r := variant{StaticInt8{}.Method(), nil}.apply(t, fixture("cnn"), filepath.Join(t.TempDir(), "o.onnx"))
	seen := map[string]int{}
	for _, row := range r.Report.Ledger {
		if !strings.Contains(row.Status, "noted") {
			seen[row.Tensor]++
		}
	}
	for _, v := range opened(t, fixture("cnn")).Model.Graph.Consts() {
		if v.Const.DType == ir.Float && len(v.Const.Shape) > 0 && seen[v.Name] != 1 {
			t.Errorf("%s has %d rows", v.Name, seen[v.Name])
		}
	}
}

// Fully connected layers have integer kernels: with the bias in an Add, at a float output, and before an activation
// with a float output, with which ONNX Runtime would compute Gemm in float.
func TestStaticProductsAreIntegers(t *testing.T) {
	s := newBuilder(t, 13)
	x := s.input("x", 3, 64)
	for range 2 {
		x = s.node("Relu", []*ir.Value{s.node("Add",
			[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 64, 64)}), s.weight("b", 64)})})
	}
	s.output("y", s.node("Gemm", []*ir.Value{x, s.weight("w", 64, 64), s.weight("b", 64)}), 3, 64)
	s.output("z", s.node("Sigmoid", []*ir.Value{s.node("Gemm", []*ir.Value{x, s.weight("w", 64, 64), s.weight("b", 64)})}),
		3, 64)
	ops, err := conform.Start(t).OptimizedOps(s.apply(
		variant{StaticInt8{}.Method(), []string{"activation-sqnr=0"}}, 20).out, conform.Options{})
	want := map[string]int{"QuantizeLinear": 1, "com.microsoft.QGemm": 3, "com.microsoft.MatMulIntegerToFloat": 1,
		"Sum": 1, "Sigmoid": 1}
	if err != nil || !maps.Equal(ops, want) {
		t.Errorf("%v, %v", ops, err)
	}
}
