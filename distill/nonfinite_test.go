package distill

import (
	"archive/zip"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// withNaN writes 64 samples, one of which is not a number.
func withNaN(t *testing.T) string {
	t.Helper()
	const n = 64
	r := rand.New(rand.NewPCG(1, 1))
	x, labels := make([]float32, n*features), make([]int64, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range labels {
		labels[i] = r.Int64N(classes)
	}
	x[37*features] = float32(math.NaN())
	path := filepath.Join(t.TempDir(), "nan.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	npy(t, z, "x", "<f4", ir.ArrayOf(x, n, features))
	npy(t, z, "labels", "<i8", ir.ArrayOf(labels, n))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A sample that is not a number ends training in the step that has it, whichever it is, with every loss, without a
// validation set and in micro-batches. No weight is NaN then.
func TestNonFiniteStepsEndTraining(t *testing.T) {
	data, teacher := withNaN(t), network(2, features, 16, classes)
	for _, loss := range [][]string{
		{"alpha", "0", "loss", "kl"}, {"alpha", "0", "loss", "mse"}, {"alpha", "0", "loss", "cosine"},
		{"loss", "cross-entropy"}, {"alpha", "0", "loss", "kl", "accumulate", "4"},
		{"alpha", "0", "loss", "kl", "optimizer", "adam8"}, {"alpha", "0", "loss", "kl", "clip", "1"},
	} {
		failed := false
		for _, steps := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			e := ir.NewEval(t.TempDir())
			defer e.Close()
			o := append([]string{"data", data, "teacher", "teacher.onnx", "batch", "8", "lr", "0.01", "validate", "0", "steps",
				steps}, loss...)
			tr := newTrainer(network(1, features, 16, classes), e, serial, parse(t, o...))
			if err := tr.prepare(t.Context(), []*ir.Model{teacher}); err != nil {
				t.Fatal(err)
			}
			err := tr.train(t.Context())
			if failed = err != nil; failed && !strings.Contains(err.Error(), "step "+steps) {
				t.Errorf("%v: %v", loss, err)
			}
			for _, p := range tr.params.weights {
				for _, w := range ir.View[float32](p.array) {
					if w != w {
						t.Fatalf("%v: weight %s is NaN after %s steps, error %v", loss, p.name, steps, err)
					}
				}
			}
			tr.close()
			if failed {
				break
			}
		}
		if !failed {
			t.Errorf("%v: no error in 8 steps on all samples", loss)
		}
	}
}

// Weights that overflow in the last step are an error: no loss is computed with them. Those that were infinite before
// training are none.
func TestNonFiniteWeightsAreAnError(t *testing.T) {
	tr := ready(t, network(1, features, 16, classes), "data", samples(t, 64), "labels", "label", "steps",
		"1", "lr", "0.01")
	if err := tr.checkWeights(); err != nil {
		t.Error(err)
	}
	w := tr.params.weights[1]
	ir.View[float32](w.array)[2] = float32(math.Inf(1))
	if err := tr.checkWeights(); err == nil || !strings.Contains(err.Error(), w.name) {
		t.Errorf("got %v", err)
	}
	w.finite = false
	if err := tr.checkWeights(); err != nil {
		t.Error(err)
	}
}

// A loss that depends on the trained weights through quantized values only has no gradient: that is an error, in
// training and in its memory plan.
func TestLossWithoutGradients(t *testing.T) {
	m := network(1, features, 16, classes)
	scale := m.Graph.AddConst("scale", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(0.1)})
	zero := m.Graph.AddConst("zero", &ir.Tensor{Spec: ir.Spec{DType: ir.Int8}, Source: ir.Mem{0}})
	y := m.Graph.Outputs[0]
	q := m.Graph.Insert(nil, "QuantizeLinear", []*ir.Value{y, scale, zero})
	dq := m.Graph.Insert(nil, "DequantizeLinear", []*ir.Value{q, scale, zero})
	dq.Type = y.Type
	m.Graph.SetOutputs(dq)
	o := []string{"data", samples(t, 64), "labels", "label", "steps", "1"}
	if _, err := trainerOf(t, m, o, true); !errors.Is(err, errNoGradients) {
		t.Errorf("training: %v", err)
	}
	if _, err := planOf(t, m, o); !errors.Is(err, errNoGradients) {
		t.Errorf("plan: %v", err)
	}
}
