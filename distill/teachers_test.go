package distill

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// taught returns the trainer after training a student of classes with teachers.
func taught(t *testing.T, teachers []*ir.Model, o ...string) *trainer {
	t.Helper()
	return trainedOn(t, network(1, features, 32, classes), teachers,
		append([]string{"labels", "label", "validate", "0", "alpha", "0"}, o...)...)
}

// trainedOn returns the trainer after training a model with teachers.
func trainedOn(t *testing.T, m *ir.Model, teachers []*ir.Model, o ...string) *trainer {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() { e.Close() })
	names := slices.Repeat([]string{"teacher.onnx"}, len(teachers))
	tr := newTrainer(m, e, serial, parse(t, append([]string{"teacher", strings.Join(names, ",")}, o...)...))
	t.Cleanup(func() { tr.close() })
	if err := tr.prepare(t.Context(), teachers); err != nil {
		t.Fatal(err)
	}
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTeachers: a step of gradient descent with the averaged soft targets of two teachers is the weighted mean of the
// steps with each.
func TestTeachers(t *testing.T) {
	data := samples(t, 300)
	a, b := network(2, features, 16, classes), network(3, features, 24, classes)
	for _, loss := range []string{"kl", "mse"} {
		step := func(weights string, teachers ...*ir.Model) []float32 {
			tr := taught(t, teachers, "data", data, "steps", "1", "optimizer", "sgd", "momentum", "0", "lr", "0.1", "loss", loss,
				"teacher-weights", weights)
			return ir.View[float32](tr.params.weights[0].array)
		}
		first, second, both := step("1", a), step("1", b), step("3,1", a, b)
		changed := 0.0
		for i, w := range both {
			if want := 0.75*first[i] + 0.25*second[i]; math.Abs(float64(w-want)) > 1e-6 {
				t.Fatalf("%s: weight %d is %g, want %g", loss, i, w, want)
			}
			changed = max(changed, math.Abs(float64(first[i]-second[i])))
		}
		if changed < 1e-4 {
			t.Errorf("%s: both teachers have the same gradient", loss)
		}
	}
}

// TestCachedTeachers: training with cached targets of two teachers, features included, is bit-identical.
func TestCachedTeachers(t *testing.T) {
	data, teachers := samples(t, 64), []*ir.Model{network(2, features, 16, classes), network(3, features, 24, classes)}
	weights := func(cache string) []float32 {
		tr := taught(t, teachers, "data", data, "epochs", "3", "batch", "16", "lr", "0.01", "features", "hidden",
			"cache-teacher", cache)
		if cache == "true" && len(tr.teachers.cache.present) != 64 {
			t.Errorf("targets of %d samples are cached, want 64", len(tr.teachers.cache.present))
		}
		return ir.View[float32](tr.params.weights[0].array)
	}
	want := weights("false")
	for i, w := range weights("true") {
		if w != want[i] {
			t.Fatalf("weight %d is %v, want %v", i, w, want[i])
		}
	}
}

// TestMeanOfDirections: targets of the cosine loss are averaged as directions.
func TestMeanOfDirections(t *testing.T) {
	ts := &teachers{temperature: parse(t, "data", "none").Temperature, weights: []float64{0.5, 0.5}}
	outputs := []map[string]*ir.Array{{"y": ir.ArrayOf([]float32{4, 0}, 1, 2)}, {"y": ir.ArrayOf([]float32{0, 0.1}, 1, 2)}}
	got, err := ts.target(term{kind: "cosine", soft: []soft{{0, "y"}, {1, "y"}}}, outputs, nil)
	if err != nil || ir.View[float32](got)[0] != 0.5 || ir.View[float32](got)[1] != 0.5 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTeacherWeights(t *testing.T) {
	for _, c := range []struct{ weights, want string }{{"1", "1 weights for 2 teachers"}, {"1,x", "is no weight"},
		{"1,-1", "is no weight"}, {"0,0", "must be positive"}} {
		_, err := pass.NewStep(distillation, set([]string{"teacher", "a", "teacher", "b", "teacher-weights", c.weights}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.weights, err, c.want)
		}
	}
	o := &Distill{Teacher: []string{"a", "b"}, TeacherWeights: []string{"3", "1"}}
	if w, err := (*FineTune)(o).teacherWeights(); err != nil || w[0] != 0.75 || w[1] != 0.25 || o.Reference() != "a" {
		t.Errorf("got %v, %v, reference %s", w, err, o.Reference())
	}
}

// TestProjections: projections are trained and planned, and not part of the model.
func TestProjections(t *testing.T) {
	data := samples(t, 300)
	teacher := []*ir.Model{network(2, features, 48, classes)}
	plain := taught(t, teacher, "data", data, "steps", "4", "lr", "0.01")
	tr := taught(t, teacher, "data", data, "steps", "4", "lr", "0.01", "features", "hidden")
	p := tr.params.byName["projection.0"]
	if p == nil || p.array.Elems() != 32*48 || string(p.array.Data) == string(p.tensor.Source.(ir.Mem)) {
		t.Fatalf("the projection is %+v", p)
	}
	extra := int64(4 * 32 * 48)
	if got := tr.memory.Weights - plain.memory.Weights; got != extra {
		t.Errorf("%d bytes of weights are planned for the projection, want %d", got, extra)
	}
	if got := tr.memory.States - plain.memory.States; got != 2*extra {
		t.Errorf("%d bytes of optimizer states are planned for the projection, want %d", got, 2*extra)
	}
	for v := range tr.model.Values() {
		if strings.HasPrefix(v.Name, "projection") || strings.HasPrefix(v.Name, "feature") {
			t.Errorf("the model has %s", v.Name)
		}
	}
}

// TestPlannedFeatures: the planned arena of a step with features and projections is the measured one.
func TestPlannedFeatures(t *testing.T) {
	tr := taught(t, []*ir.Model{network(2, features, 48, classes)}, "data", samples(t, 64), "steps", "1", "batch", "32",
		"lr", "0.01", "features", "hidden")
	if got := measuredArena(t, tr); got != tr.step.arena() {
		t.Errorf("planned arena %d bytes, measured %d", tr.step.arena(), got)
	}
}

// TestStages: the first stage trains on features alone, the second one on outputs.
func TestStages(t *testing.T) {
	steps := Stages(Distill{Teacher: []string{"t"}, Features: []string{"relations"}, Steps: 7, Save: "ckpt",
		Alpha: new(0.5), Reinit: new(int64(3))})
	first, second := steps[0].(*Distill), steps[1].(*Distill)
	if first.Loss != noLoss || first.Features.String() != "relations" || first.Alpha != nil ||
		first.Save != "ckpt.stage1" || first.Steps != 7 {
		t.Errorf("first stage %+v", first)
	}
	if first.Reinit == nil || second.Reinit != nil || !second.BatchStatistics {
		t.Error("the second stage must continue from the weights of the first one")
	}
	if second.Loss != "" || second.Features != nil || *second.Alpha != 0.5 || second.Save != "ckpt" ||
		second.Teacher.String() != "t" {
		t.Errorf("second stage %+v", second)
	}
}

// TestFeaturesAlone: without --features, --loss none trains on the kinds that the models have.
func TestFeaturesAlone(t *testing.T) {
	tr := taught(t, []*ir.Model{network(2, features, 48, classes)}, "data", samples(t, 300), "steps", "2", "lr", "0.01",
		"loss", noLoss)
	if len(tr.graphs.terms) != 1 || tr.graphs.terms[0].kind != hints || tr.settings.Features.String() != hints {
		t.Errorf("terms %+v of features %s", tr.graphs.terms, tr.settings.Features)
	}
}
