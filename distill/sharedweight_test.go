package distill

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// palettes are steps with codebooks of each granularity, with and without scales, and each size of an index.
var palettes = []string{
	"palette", "palette entries=4", "palette entries=64 block=12", "palette entries=256", "palette block=0",
	"palette entries=64 block=0",
	"palette granularity=per-group group=4", "palette entries=4 granularity=per-group group=4 block=0",
	"palette entries=4 granularity=per-block block=64",
	"palette vector=2", "palette vector=4 entries=256 block=0",
}

// Training computes with the weights that the quantized model stores, whatever the entries of codebooks are.
func TestSharedWeights(t *testing.T) {
	data := samples(t, 60)
	for _, text := range palettes {
		t.Run(strings.ReplaceAll(text, " ", ","), func(t *testing.T) {
			tr := qatTrainer(t, varied(), quantizer(t, text), "data", data, "labels", "label", "batch", "8")
			r := rand.New(rand.NewPCG(1, 2))
			for _, p := range tr.params.weights {
				for i := range ir.View[float32](p.array) {
					ir.View[float32](p.array)[i] += float32(r.NormFloat64())
				}
			}
			want, got := stored(t, tr, quantizer(t, text)), computedWeights(t, tr)
			if len(want) < 3 || len(want) != len(got) {
				t.Fatalf("the method quantizes %d weights, %d have trained codebooks", len(want), len(got))
			}
			for name, b := range want {
				if !slices.Equal(got[name], b) {
					t.Errorf("weight %s differs from the stored one", name)
				}
			}
		})
	}
}

// computedWeights returns the values that training computes for weights with codebooks.
func computedWeights(t *testing.T, tr *trainer) map[string][]byte {
	t.Helper()
	st, names, out := &step{feeds: map[string]*ir.Array{}}, map[string]string{}, map[string][]byte{}
	tape, err := grad.New(t.Context(), tr.model, grad.Options{Inputs: tr.loader.smallest(), Train: tr.params.trainable,
		Change: tr.graphs.evaluationChange(t.Context(), st), Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	var outputs []*ir.Value
	for n := range tape.Graph().Nodes() {
		if n.Op != sharedWeightOp {
			continue
		}
		i := slices.IndexFunc(tape.Params, func(p *grad.Param) bool { return p.Value == n.Input(0) })
		names[n.Outputs[0].Name] = tape.Params[i].Name
		outputs = append(outputs, n.Outputs[0])
	}
	tape.Graph().SetOutputs(outputs...)
	for _, p := range tape.Params {
		st.feeds[p.Value.Name] = tr.params.byName[p.Name].array
	}
	for name := range st.feeds {
		if tape.Value(name) == nil {
			delete(st.feeds, name)
		}
	}
	s, err := engine.Open(t.Context(), tape.Model, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, in := range s.Inputs() {
		if st.feeds[in.Name] == nil {
			a := &ir.Array{DType: in.Type.Elem, Shape: []int64{1, features}}
			zero(a)
			st.feeds[in.Name] = a
		}
	}
	results, err := s.Run(t.Context(), st.feeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range results {
		out[names[name]] = a.Data
	}
	return out
}

// An entry changes by the sum of the gradients of its elements, times their scales.
func TestCodebookGradient(t *testing.T) {
	data := samples(t, 60)
	o := []string{"data", data, "labels", "label", "batch", "16", "steps", "1", "optimizer", "sgd", "schedule", "constant",
		"lr", "0.5", "validate", "0", "dropout", "0"}
	tr := qatTrainer(t, varied(), quantizer(t, "palette entries=4 block=16"), o...)
	plain := qatTrainer(t, varied(), quantizer(t, "palette entries=4 block=16"), o...)
	dense := computedWeights(t, plain)
	if err := plain.step.close(); err != nil {
		t.Fatal(err)
	}
	before := map[string][]float32{}
	for name, p := range tr.params.byName {
		if before[name] = slices.Clone(ir.View[float32](p.array)); p.shared != nil {
			q := plain.params.byName[name]
			q.shared = nil
			q.setArray(&ir.Array{DType: ir.Float, Shape: q.tensor.Shape, Data: slices.Clone(dense[name])},
				plain.settings.chosenOptimizer())
		}
	}
	plain.fakeQuant, plain.graphs.fakeQuant = nil, nil
	if err := plain.openGraphs(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, t1 := range []*trainer{tr, plain} {
		if err := t1.train(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	checked := 0
	for name, p := range tr.params.byName {
		if p.shared == nil {
			continue
		}
		change, indices, scales := make([]float64, len(before[name])), ir.View[int32](p.shared.indices),
			ir.View[float32](p.shared.scales)
		for i, d := range difference(plain.params.byName[name].array.Data, dense[name]) {
			change[indices[i]] += d * float64(scales[i/16])
		}
		for i, w := range ir.View[float32](p.array) {
			if got := float64(w) - float64(before[name][i]); got-change[i] > 1e-4 || change[i]-got > 1e-4 {
				t.Errorf("%s: entry %d changes by %g, its elements by %g", name, i, got, change[i])
			} else if change[i] > 1e-3 {
				checked++
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d entries change", checked)
	}
}

// Weights that training stores are those of the palette step, which keeps their codebooks.
func TestTrainedCodebooksAreStored(t *testing.T) {
	data := samples(t, 240)
	step := quantizer(t, "palette entries=4")
	m, e := network(1, features, 64, 32, classes), ir.NewEval(t.TempDir())
	defer e.Close()
	train := finetune(t, "data", data, "labels", "label", "batch", "16", "epochs", "3", "qat", "palette")
	res, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 2}, []pass.Options{train, step})
	if err != nil {
		t.Fatal(err)
	}
	if res.Trainings[0].Kept == 0 {
		t.Fatal("training did not improve the model")
	}
	found := 0
	for _, r := range res.Rows {
		if r.Sharing == nil {
			continue
		}
		if _, ok := r.After[r.Sharing.Codebook].Tensor.Source.(ir.Mem); !ok {
			t.Errorf("%s has a codebook of k-means", r.Tensor)
		}
		found++
	}
	if found == 0 {
		t.Error("no codebooks")
	}
}
