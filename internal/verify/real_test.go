package verify

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// scores are what ONNX Runtime scored with the shared models, by their names.
func scores(t *testing.T) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(conform.Shared(t), "fixtures", "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Entries []struct {
			Name       string
			Evaluation struct{ FP32 float64 }
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	by := map[string]float64{}
	for _, e := range manifest.Entries {
		if e.Evaluation.FP32 > 0 {
			by[e.Name] = e.Evaluation.FP32
		}
	}
	return by
}

// sharedModel opens a model of the shared material.
func sharedModel(t *testing.T, name string) *ir.Model {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(conform.Shared(t), "fixtures", "models", "*", name, "model.onnx"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d models are called %s: %v", len(found), name, err)
	}
	f, err := onnx.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// Trained models classify as many samples right as they do in ONNX Runtime.
func TestAccuraciesOfTrainedModels(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs models on thousands of samples")
	}
	want := scores(t)
	data := filepath.Join(conform.Shared(t), "fixtures", "datasets")
	mnist := filepath.Join(data, "mnist", "t10k-even-images-idx3-ubyte.gz") + "," +
		filepath.Join(data, "mnist", "t10k-even-labels-idx1-ubyte.gz")
	cifar := filepath.Join(data, "cifar10", "sdp200.bin")
	pixels := dataset.Options{Scale: 1.0 / 255}
	channels := dataset.Options{Scale: 1.0 / 255, Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.225}}
	for _, c := range []struct {
		name, data string
		o          dataset.Options
	}{
		{"mnist_cntk", mnist, dataset.Options{}},
		{"mnist_cnn_max3", mnist, pixels},
		{"mnist_self_attention", mnist, pixels},
		{"mnist_sigmoid", mnist, pixels},
		{"mnist_softmax_head", mnist, pixels},
		{"cifar_wide_kw", cifar, channels},
		{"cifar_deep_kw", cifar, channels},
		{"mlperf_resnet8", cifar, dataset.Options{}}, // with channels last
		{"magika_v3_3", filepath.Join(data, "magika", "inputs.npz"), dataset.Options{Labels: "label"}},
		{"sklearn_randomforest", filepath.Join(data, "iris", "iris.csv"), dataset.Options{Labels: "species"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sharedModel(t, c.name)
			set, err := dataset.Open(c.data, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			r, err := Recorded(t.Context(), open(t, m, nil), set, Tolerance{}, Options{Batch: 20})
			if err != nil {
				t.Fatal(err)
			}
			// The scores are written with four digits.
			if r.Accuracy == nil || math.Abs(r.Accuracy.After-want[c.name]) > 0.00005 {
				t.Errorf("got %+v, want %v", r.Accuracy, want[c.name])
			}
		})
	}
}

// Sentences are classified by their embeddings: the mean over their tokens, of unit length,
// is nearest to that of the training sentences of the same class.
func TestEmbeddingsTellSpamFromHam(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a transformer on 800 sentences")
	}
	const name = "minilm_l6_v2_vocab3086"
	m := sharedModel(t, name)
	sentences := readSentences(t, m)
	var centre [2][]float64
	for _, s := range sentences {
		if !s.test {
			if centre[s.class] == nil {
				centre[s.class] = make([]float64, len(s.vector))
			}
			for i, x := range s.vector {
				centre[s.class][i] += x
			}
		}
	}
	for _, c := range centre {
		unit(c)
	}
	right, all := 0, 0
	for _, s := range sentences {
		if !s.test {
			continue
		}
		all++
		nearest := int64(0)
		if dot(s.vector, centre[1]) > dot(s.vector, centre[0]) {
			nearest = 1
		}
		if nearest == s.class {
			right++
		}
	}
	if got, want := fmt.Sprintf("%.4g", float64(right)/float64(all)), fmt.Sprint(scores(t)[name]); got != want {
		t.Errorf("%s of %d sentences are classified correctly, want %s", got, all, want)
	}
}

// A sentence is one row of the data.
type sentence struct {
	vector []float64
	class  int64
	test   bool
}

func readSentences(t *testing.T, m *ir.Model) []sentence {
	t.Helper()
	path := filepath.Join(conform.Shared(t), "fixtures", "datasets", "sms_spam", "sms800_tokens.npz")
	session, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var read []sentence
	for _, labels := range []string{"labels", "is_test"} {
		set, err := dataset.Open(path, dataset.Inputs(m.Graph), nil,
			dataset.Options{Labels: labels, Fill: map[string]float64{"token_type_ids": 0}})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		for b, err := range set.Batches(t.Context(), dataset.Order{Size: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			if labels == "is_test" {
				read[b.First].test = b.Classes()[0] == 1
				continue
			}
			out, err := session.Run(t.Context(), trimmed(b.Inputs), nil)
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, sentence{vector: pooled(out["last_hidden_state"]), class: b.Classes()[0]})
		}
	}
	return read
}

// trimmed is a sentence without what fills it up, which the mask leaves out.
func trimmed(in map[string]*ir.Array) map[string]*ir.Array {
	words := int64(0)
	for _, x := range all(in["attention_mask"]) {
		words += int64(x)
	}
	out := map[string]*ir.Array{}
	for name, a := range in {
		out[name] = ir.ArrayOf(ir.View[int64](a)[:words], 1, words)
	}
	return out
}

// pooled is the mean of tokens, of unit length.
func pooled(tokens *ir.Array) []float64 {
	mean := make([]float64, tokens.Shape[2])
	for i, x := range all(tokens) {
		mean[i%len(mean)] += x
	}
	unit(mean)
	return mean
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func unit(v []float64) {
	length := math.Sqrt(dot(v, v))
	for i := range v {
		v[i] /= length
	}
}
