package distill

import (
	"archive/zip"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// planOptions are sets of options that differ in memory.
var planOptions = [][]string{
	{},
	{"checkpoint", "sqrt", "optimizer", "sgd"},
	{"checkpoint", "auto", "batch-statistics", "true"},
	{"checkpoint", "light", "dropout", "0.2", "clip", "1"},
	{"storage", "float16", "optimizer", "adam8"},
	{"offload", "all", "storage", "int8", "clip", "1", "optimizer", "momentum"},
	{"accumulate", "2", "optimizer", "adamw", "max-norm", "3"},
	{"qat", "weight-int4", "checkpoint", "every=2"},
	{"qat", "static-int8 no-bias-correction"},
	{"storage", "int8", "checkpoint", "*"},
	{"offload", "activations"},
}

const planBatch = 4

// plannedModels are the real models of the test, but for exhaustive tests.
var plannedModels = []string{"mlperf_resnet8", "magika_v3_3", "mnist_self_attention", "dtln_1", "fsanet_1x1",
	"ppocr_v3_det"}

// TestPlanOfModels compares plans of models whose payloads cannot be read with those of training, and with the measured
// memory of a step.
func TestPlanOfModels(t *testing.T) {
	planned := 0
	real := conform.RealModels(t)
	if !conform.Exhaustive() {
		real = slices.DeleteFunc(real, func(path string) bool {
			return !slices.Contains(plannedModels, filepath.Base(filepath.Dir(path)))
		})
	}
	for i, path := range append(conform.Fixtures(t), real...) {
		for _, o := range conform.Sampled(i, planOptions) {
			t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path)+"/"+strings.Join(o, " "), func(t *testing.T) {
				if comparePlans(t, path, append([]string{"batch", "4", "validate", "0.5", "min-size", "1"}, o...)) {
					planned++
				}
			})
		}
	}
	if planned < 20 {
		t.Errorf("%d plans", planned)
	}
}

// comparePlans reports whether the model can be trained.
func comparePlans(t *testing.T, path string, o []string) bool {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if outputs := f.Model.Graph.Outputs; len(outputs) > 1 {
		o = append(o, "scores", outputs[0].Name)
	}
	plan, err := planOf(t, unreadable(t, path, slices.Contains(o, "qat")), o)
	data, labelled := randomSamples(t, f.Model, 2*planBatch)
	if data == "" {
		return false
	}
	tr, trained := trainerOf(t, f.Model, append(o, "data", data), labelled)
	if tr == nil || tr.loader.set == nil { // no trainable weights, or inputs that are not samples of one batch axis
		return false
	}
	if err != nil || trained != nil {
		if err == nil || trained == nil {
			t.Errorf("%s %v: plan: %v; training: %v", path, o, err, trained)
		}
		return false
	}
	same := tr.memory.Arena == plan.Arena && tr.memory.Total() == plan.Bytes && tr.memory.Layout == plan.Layout &&
		slices.Equal(tr.memory.sizes(), plan.Memory)
	if slices.Contains(o, "qat") { // calibration may leave layers in float32
		same = tr.memory.Arena <= plan.Arena && tr.memory.Total() <= plan.Bytes
	}
	if !same {
		t.Errorf("%s %v:\nplan     %d %s %v\ntraining %d %s %v", path, o, plan.Arena, plan.Layout, plan.Memory,
			tr.memory.Arena, tr.memory.Layout, tr.memory.sizes())
	}
	if got := measuredArena(t, tr); got != tr.step.arena() {
		t.Errorf("%s %v: arena of %d bytes planned, %d measured", path, o, tr.step.arena(), got)
	}
	return true
}

// unreadable opens a model and removes the payloads of its large constants, with recurrent but those of recurrent
// layers.
func unreadable(t *testing.T, path string, recurrent bool) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for g := range f.Model.Graphs() {
		for _, v := range g.Consts() {
			if v.Const.Bytes() > 64<<10 && !(recurrent && isRecurrent(v)) {
				v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(nil)})
			}
		}
	}
	return f.Model
}

// isRecurrent reports whether an LSTM consumes v.
func isRecurrent(v *ir.Value) bool {
	return slices.ContainsFunc(v.Uses(), func(u ir.Use) bool { return u.Node.Op.Type == "LSTM" })
}

// stepsOf returns the training step of options, and the quantization step of --qat after it.
func stepsOf(t *testing.T, o []string) (FineTune, []pass.Options) {
	t.Helper()
	var later []pass.Options
	if i := slices.Index(o, "qat"); i >= 0 {
		later = []pass.Options{quantizer(t, o[i+1])}
		o = slices.Clone(o)
		o[i+1] = later[0].Method().Name
	}
	return parse(t, o...).FineTune, later
}

func planOf(t *testing.T, m *ir.Model, o []string) (*Plan, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	options, later := stepsOf(t, o)
	return NewPlan(t.Context(), &pass.Step{Model: m, Eval: e, Later: later}, options, PlanOptions{})
}

// trainerOf returns a prepared trainer of a model that is its own teacher if the samples have no labels.
func trainerOf(t *testing.T, m *ir.Model, o []string, labelled bool) (*trainer, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() { e.Close() })
	options, later := stepsOf(t, o)
	tr, err := newStepTrainer(&pass.Step{Model: m, Eval: e, Later: later}, newFineTuning(options))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { tr.close() })
	teachers := []*ir.Model{m}
	if labelled {
		teachers = nil
	}
	return tr, tr.prepare(t.Context(), teachers)
}

// measuredArena runs a step of the first micro-batch and returns its measured memory.
func measuredArena(t *testing.T, tr *trainer) int64 {
	t.Helper()
	n := tr.layout.microBatch()
	for b, err := range tr.loader.batches(t.Context(), tr.loader.training[:n], n, nil) {
		if err != nil {
			t.Fatal(err)
		}
		targets, err := tr.teachers.targets(t.Context(), tr.step.targets, b, tr.loader.training[:n])
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.fakeQuant.quantizeWeights(t.Context(), tr.environment, tr.params.weights); err != nil {
			t.Fatal(err)
		}
		m, err := tr.step.session.Measure(t.Context(),
			tr.step.arguments(b, targets, hyperparameters{rate: 1e-3, step: 1, update: 1, lossScale: 1}))
		if err != nil {
			t.Fatal(err)
		}
		return (m.Arena + memory.Align - 1) / memory.Align * memory.Align
	}
	return 0
}

// randomSamples writes random samples for m to a file, with labels if its output can be class scores. The path is empty
// for a model whose inputs cannot be generated, or have no common batch axis: caches [2, batch, …] of language models.
func randomSamples(t *testing.T, m *ir.Model, n int) (path string, labelled bool) {
	t.Helper()
	if !hasBatchAxis(dataset.Inputs(m.Graph)) {
		return "", false
	}
	set, err := dataset.Generate(withDynamicBatch(dataset.Inputs(m.Graph)),
		dataset.Random{Batch: int64(n), Ranges: dataset.Ranges(m), Workers: 1})
	if err != nil {
		return "", false
	}
	defer set.Close()
	path = filepath.Join(t.TempDir(), "samples.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for b, err := range set.Batches(context.Background(), dataset.Order{Size: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range b.Inputs {
			descr, ok := map[ir.DType]string{ir.Float: "<f4", ir.Double: "<f8", ir.Int64: "<i8", ir.Int32: "<i4",
				ir.Uint8: "|u1", ir.Bool: "|b1"}[a.DType]
			if !ok {
				return "", false
			}
			npy(t, z, strings.ReplaceAll(name, "/", "_"), descr, a)
		}
	}
	l := &loader{environment: &environment{model: m}, settings: newFineTuning(FineTune{})}
	if labelled = l.hasClasses(); labelled {
		npy(t, z, "labels", "<i8", ir.ArrayOf(make([]int64, n), int64(n)))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path, labelled
}

// hasBatchAxis reports whether the first axes of all inputs are the same batch: of a fixed size, or dynamic or 1.
func hasBatchAxis(inputs []dataset.Input) bool {
	return !slices.ContainsFunc(inputs, func(in dataset.Input) bool {
		return in.Type != nil && len(in.Type.Shape) > 0 && max(1, in.Type.Shape[0].N) != int64(fixedBatch(inputs))
	})
}

// The batch has the size of --batch; other dynamic axes have the names that the model gives them, in training as in
// verification.
func TestDimOfTheBatch(t *testing.T) {
	for dim, want := range map[string]string{"N=4": "dim N=4: the axis is the batch of input \"x\"; set its size " +
		"by batch", "M=4": "the nearest of their dynamic axes: N"} {
		for _, data := range [][]string{nil, {"data", samples(t, 64), "labels", "label"}} {
			if _, err := planOf(t, network(1, features, 16, classes), append([]string{"dim", dim}, data...)); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("--dim %s %v: %v, want %q", dim, data, err, want)
			}
		}
	}
}
