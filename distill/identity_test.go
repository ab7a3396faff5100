package distill

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
)

// A checkpoint belongs to a model, samples, labels, preprocessing, teachers and options by their content, wherever the
// files are.
func TestCheckpointsBelongToContent(t *testing.T) {
	data, checkpoint := samples(t, 64), filepath.Join(t.TempDir(), "checkpoint")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(from, to string) string {
		path := filepath.Join(t.TempDir(), "other.csv")
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := strings.Split(string(text), "\n")
	student, teacher := func() *ir.Model {
		return network(1, features, 16, classes)
	}, func() *ir.Model { return network(2, features, 16, classes) }
	pruned := student()
	w := array(pruned.Graph.Consts()[0].Const.Source.(ir.Mem))
	ir.View[float32](w)[5] = 0
	pruned.Graph.Consts()[0].SetConst(&ir.Tensor{Spec: pruned.Graph.Consts()[0].Const.Spec, Source: ir.Mem(w.Data)})
	base := []string{"labels", "label", "teacher", "a.onnx", "batch", "8", "steps", "2", "lr", "0.01", "save", checkpoint}
	run := func(m, taught *ir.Model, data string, o ...string) error {
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		tr := newTrainer(m, e, serial, parse(t, append(append([]string{"data", data}, base...), o...)...))
		defer tr.close()
		if err := tr.prepare(t.Context(), []*ir.Model{taught}); err != nil {
			return err
		}
		if err := tr.resume(t.Context()); err != nil {
			return err
		}
		return tr.train(t.Context())
	}
	if err := run(student(), teacher(), data); err != nil {
		t.Fatal(err)
	}
	first := strings.Split(lines[1], ",")
	for _, c := range []struct {
		what, want string
		m, taught  *ir.Model
		data       string
		o          []string
	}{
		{"the same", "", student(), teacher(), data, nil},
		{"a copy of the data", "", student(), teacher(), changed("", ""), nil},
		{"a weight", "a training of another model;", pruned, teacher(), data, nil},
		{"an input", "other data, labels or preprocessing;", student(), teacher(), changed(first[0], "7.5"), nil},
		{"a label", "other data, labels or preprocessing;", student(), teacher(),
			changed(lines[1], strings.Join(first[:features], ",")+",2"), nil},
		{"preprocessing", "other data, labels or preprocessing;", student(), teacher(), data, []string{"scale", "0.5"}},
		{"the teacher", "other teachers;", student(), network(3, features, 16, classes), data, nil},
		{"the optimizer", "other options;", student(), teacher(), data, []string{"optimizer", "sgd"}},
		{"the loss", "other options;", student(), teacher(), data, []string{"loss", "mse"}},
		{"the seed", "other options;", student(), teacher(), data, []string{"seed", "2"}},
	} {
		err := run(c.m, c.taught, c.data, append(c.o, "resume", "true")...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// A score is compared with the best one of the checkpoint, which must be of the same evaluator.
func TestCheckpointsBelongToAnEvaluator(t *testing.T) {
	e := Evaluator(func(context.Context, metric.Files) (metric.Value, error) { return metric.Value{}, nil })
	digests := map[string]bool{}
	for _, o := range []FineTune{{}, {Evaluator: e}, {Evaluator: e, EvaluatorID: "one"},
		{Evaluator: e, EvaluatorID: "two"}} {
		b := &graphBuilder{settings: &settings{FineTune: o}, loader: &loader{}, params: &parameters{}}
		digests[b.optionsDigest()] = true
	}
	if len(digests) != 4 {
		t.Errorf("%d digests of the options with 4 evaluators", len(digests))
	}
}
