package distill

import (
	"archive/zip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// tagger is a model with scores of classes for each token, or with flat for the tokens of all samples in one axis.
func tagger(seed uint64, flat bool) *ir.Model {
	const width = 6
	r := rand.New(rand.NewPCG(seed, 7))
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 9, []ir.Opset{{Version: 17}}
	g := m.Graph
	dims := []ir.Dim{{N: -1, Param: "batch"}, {N: -1, Param: "tokens"}}
	for _, name := range []string{"input_ids", "attention_mask"} {
		v := g.AddValue(name)
		v.Type = &ir.Type{Elem: ir.Int64, Shape: dims}
		g.Inputs = append(g.Inputs, v)
	}
	x := g.Insert(nil, "Gather", []*ir.Value{g.AddConst("embeddings", random(r, taggedWords, width)), g.Inputs[0]})
	x = g.Insert(nil, "Tanh", []*ir.Value{g.Insert(nil, "MatMul",
		[]*ir.Value{x, g.AddConst("inner", random(r, width, width))})})
	y := g.Insert(nil, "MatMul", []*ir.Value{x, g.AddConst("head", random(r, width, taggedWords))})
	y.Type = &ir.Type{Elem: ir.Float, Shape: append(dims, ir.Dim{N: taggedWords})}
	if flat {
		shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{2}},
			Source: ir.Ints(-1, taggedWords)})
		y = g.Insert(nil, "Reshape", []*ir.Value{y, shape})
		y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "all"}, {N: taggedWords}}}
	}
	g.AddOutput(y)
	return m
}

const taggedWords = 9

// tagged writes 16 samples of 7 tokens or fewer, the padding of which is a token, with a class for each token but
// padding.
func tagged(t *testing.T, padding int64) string {
	t.Helper()
	const count, length = 16, 7
	r := rand.New(rand.NewPCG(5, 5))
	ids, keep, labels := make([]int64, count*length), make([]int64, count*length), make([]int64, count*length)
	for i := range ids {
		tokens := []int{2, 2, 3, 7}[i/length%4]
		ids[i], labels[i] = r.Int64N(taggedWords), r.Int64N(taggedWords)
		if keep[i] = 1; i%length >= tokens {
			ids[i], keep[i], labels[i] = padding, 0, dataset.NoLabel
		}
	}
	path := filepath.Join(t.TempDir(), "tagged.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, values := range map[string][]int64{"input_ids": ids, "attention_mask": keep, "labels": labels} {
		npy(t, z, name, "<i8", ir.ArrayOf(values, count, length))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// distance is the largest difference of weights, as a fraction of the largest change of one by training.
func distance(a, b *trainer) float64 {
	difference, change := 0.0, 0.0
	for k, p := range a.params.weights {
		x, y := ir.View[float32](p.array), ir.View[float32](b.params.weights[k].array)
		before := ir.View[float32](&ir.Array{DType: ir.Float, Shape: p.array.Shape, Data: p.tensor.Source.(ir.Mem)})
		for i := range x {
			difference = max(difference, math.Abs(float64(x[i]-y[i])))
			change = max(change, math.Abs(float64(x[i]-before[i])))
		}
	}
	return difference / change
}

var gradientDescent = []string{"optimizer", "sgd", "schedule", "constant", "warmup", "0", "weight-decay", "0", "lr",
	"0.1", "batch", "16", "validate", "0"}

var taggedLosses = [][]string{
	{"loss", "cross-entropy"}, {"loss", "next-token"}, {"loss", "kl", "alpha", "0"}, {"loss", "mse", "alpha", "0"},
	{"loss", "cosine", "alpha", "0"},
	{"loss", "kl", "alpha", "0.5"}, {"loss", "cosine", "alpha", "0.3"},
}

// A step has one gradient, however many micro-batches it has: samples differ in the number of labels and tokens.
func TestAccumulatedStepsHaveOneGradient(t *testing.T) {
	data := tagged(t, 0)
	for _, loss := range taggedLosses {
		step := func(n int) *trainer {
			o := append(append([]string{"data", data, "steps", "1", "accumulate", fmt.Sprint(n)}, gradientDescent...), loss...)
			return trainedOn(t, tagger(1, false), []*ir.Model{tagger(2, false)}, o...)
		}
		whole := step(1)
		for _, n := range []int{2, 4, 16} {
			parts := step(n)
			if d := distance(whole, parts); !(d < 1e-5) {
				t.Errorf("%v: weights differ by %.2g of their change in %d micro-batches", loss, d, n)
			}
			if a, b := whole.state.History.Loss[0].Y, parts.state.History.Loss[0].Y; math.Abs(a-b) > 1e-6*math.Abs(a) {
				t.Errorf("%v: the loss is %v, in %d micro-batches %v", loss, a, n, b)
			}
		}
	}
}

// All samples of the validation set are evaluated, in micro-batches of any size, of which the last one may be smaller.
func TestAllOfTheValidationSetIsEvaluated(t *testing.T) {
	for _, loss := range [][]string{{"loss", "cross-entropy"}, {"loss", "kl", "alpha", "0"}, {"metric", "f1"}} {
		run := func(n int) (validation, agreement, measured float64) {
			o := slices.Concat([]string{"data", samples(t, 90), "labels", "label", "steps", "1", "accumulate", fmt.Sprint(n)},
				gradientDescent, []string{"validate", "0.3"}, loss)
			tr := trainedOn(t, network(1, features, 32, classes), []*ir.Model{network(2, features, 32, classes)}, o...)
			evaluated := 0
			for part := tr.evaluator; part != nil; part = part.rest {
				evaluated += len(part.samples)
			}
			if h := tr.state.History; evaluated == 27 && len(h.Metric) > 0 {
				measured = h.Metric[0].Y
			}
			return tr.state.History.Validation[0].Y, tr.state.History.Agreement[0].Y, measured
		}
		loss0, agreement, measured := run(1)
		if loss[0] == "metric" && measured == 0 {
			t.Error("the 27 samples were not measured")
		}
		for _, n := range []int{2, 4, 16} {
			if l, a, m := run(n); math.Abs(l-loss0) > 1e-6*loss0 || a != agreement || m != measured {
				t.Errorf("%v: validation loss, agreement and metric %v %v %v, in %d micro-batches %v %v %v", loss, loss0, agreement,
					measured, n, l, a, m)
			}
		}
	}
}

// What training draws at random for a sample depends on its position in the step, not on the micro-batch that it is in.
func TestMicroBatchesDrawAsTheirStep(t *testing.T) {
	for _, random := range [][]string{{"dropout", "0.5"}, {"augment", "flip,shift=1"},
		{"dropout", "0.2", "augment", "flip"}} {
		step := func(n int, more ...string) *trainer {
			o := slices.Concat([]string{"data", samples(t, 64), "labels", "label", "columns", "0,1,2,3", "steps", "2",
				"accumulate", fmt.Sprint(n)}, gradientDescent, more)
			return trainedOn(t, network(1, 4, 32, classes), nil, o...)
		}
		whole := step(1, random...)
		for _, n := range []int{2, 4, 16} {
			if d := distance(whole, step(n, random...)); !(d < 1e-4) {
				t.Errorf("%v: weights differ by %.2g of their change in %d micro-batches", random, d, n)
			}
		}
		if d := distance(whole, step(1)); d < 0.01 {
			t.Errorf("%v changes weights by %.2g only", random, d)
		}
	}
}

// Neither the losses of steps nor the result on the validation set depend on what padding holds.
func TestPaddingDoesNotCountInTraining(t *testing.T) {
	for _, flat := range []bool{false, true} {
		for _, loss := range taggedLosses {
			if flat && (loss[1] == "next-token" || loss[1] == "cosine" || loss[3%len(loss)] == "0.5" ||
				loss[1] == "cross-entropy") {
				continue // they require the axes of samples and tokens
			}
			for _, teachers := range []int{1, 2} {
				step := func(padding int64) *trainer {
					o := append(append([]string{"data", tagged(t, padding), "steps", "3"}, gradientDescent...), loss...)
					o = append(o, "batch", "4", "validate", "0.5")
					return trainedOn(t, tagger(1, flat), []*ir.Model{tagger(2, flat), tagger(3, flat)}[:teachers], o...)
				}
				a, b := step(0), step(4)
				x, y := a.state.History, b.state.History
				if len(x.Loss) == 0 || len(x.Validation) == 0 {
					t.Fatalf("%v: no losses of steps or of the validation set: %+v", loss, x)
				}
				if got, want := fmt.Sprint(y.Loss, y.Validation, y.Agreement),
					fmt.Sprint(x.Loss, x.Validation, x.Agreement); got != want {
					t.Errorf("%v, %d teachers: losses and agreement %s, with other padding %s", loss, teachers, want, got)
				}
			}
		}
	}
}
