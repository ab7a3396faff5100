package distill

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// kept trains for three epochs with an evaluator that returns these values in its calls for the model.
func kept(t *testing.T, higher bool, values ...float64) (training pass.Training, references int) {
	t.Helper()
	calls := 0
	e := Evaluator(func(_ context.Context, f metric.Files) (metric.Value, error) {
		if f.Reference == f.Candidate {
			references++
			return metric.Value{Name: "mine", Value: 1, HigherIsBetter: higher}, nil
		}
		calls++
		return metric.Value{Name: "mine", Value: values[min(calls, len(values))-1], HigherIsBetter: higher}, nil
	})
	s := parse(t, "data", samples(t, 300), "labels", "label", "epochs", "3")
	s.Evaluator = e
	return trainedFrom(t, s), references
}

// trainedFrom trains a network whose reference is itself before training.
func trainedFrom(t *testing.T, s *settings) pass.Training {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	tr := newTrainer(network(1, features, 32, classes), eval, 2, s)
	defer tr.close()
	if err := tr.prepare(t.Context(), []*ir.Model{network(1, features, 32, classes)}); err != nil {
		t.Fatal(err)
	}
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr.report("finetune")
}

// The checkpoint with the best value of the evaluator is kept, whatever the accuracy.
func TestEvaluatorChoosesTheCheckpoint(t *testing.T) {
	const epoch = 8 // steps
	for _, c := range []struct {
		higher bool
		values []float64
		want   int
	}{
		{true, []float64{1, 5, 2, 3}, epoch},
		{false, []float64{1, 5, 2, 3}, 0},
		{false, []float64{9, 5, 2, 3}, 2 * epoch},
		{true, []float64{7, 7, 7, 7}, 3 * epoch}, // the loss decides
	} {
		training, references := kept(t, c.higher, c.values...)
		if training.Kept != c.want || references != 1 {
			t.Errorf("%v: weights of step %d were kept, want %d; %d calls for the source", c, training.Kept, c.want, references)
		}
		if training.Metric != "mine" || len(training.ValidationMetric) != 4 || training.ValidationMetric[3].Y != c.values[3] {
			t.Errorf("history: %s %v", training.Metric, training.ValidationMetric)
		}
	}
}

// Metrics measure the validation set, and those of classes agree with the accuracy that is recorded anyway.
func TestMetricsOfTheValidationSet(t *testing.T) {
	data := samples(t, 300)
	for _, name := range []string{"top1", "f1", "embedding-cosine", "nearest-centroid"} {
		training := trainedFrom(t, parse(t, "data", data, "labels", "label", "epochs", "2", "metric", name))
		if training.Metric != name || len(training.ValidationMetric) != 3 {
			t.Errorf("%s: history %s %v", name, training.Metric, training.ValidationMetric)
			continue
		}
		best := slices.MaxFunc(training.ValidationMetric, func(a, b pass.Point) int {
			if a.Y < b.Y {
				return -1
			}
			return 1
		})
		if name == "top1" && !slices.Equal(training.ValidationMetric, training.ValidationAccuracy) {
			t.Errorf("top1 %v, accuracy %v", training.ValidationMetric, training.ValidationAccuracy)
		}
		if name != "embedding-cosine" && training.Kept != best.Step && best.Y != training.ValidationMetric[2].Y {
			t.Errorf("%s: weights of step %d were kept, the best is %v", name, training.Kept, best)
		}
		if y := best.Y; !(y > 0 && y <= 1+1e-9) || math.IsNaN(y) {
			t.Errorf("%s: %v", name, y)
		}
	}
}

// Training that leaves the source is worse by its distance from it: the weights before training are kept.
func TestMetricOfTheReferenceKeepsTheSource(t *testing.T) {
	training := trainedFrom(t, parse(t, "data", samples(t, 300), "labels", "label", "epochs", "1", "metric",
		"embedding-cosine", "lr", "0.05"))
	if training.Kept != 0 {
		t.Errorf("weights of step %d were kept", training.Kept)
	}
}

func TestMetricsThatDoNotApply(t *testing.T) {
	data := samples(t, 300)
	for _, c := range []struct {
		want string
		o    []string
	}{
		{"unknown metric \"magic\"", []string{"metric", "magic"}},
		{"validation set: metric map: labels are", []string{"metric", "map"}},
		{"validation set: metric perplexity: the data has no token ids", []string{"metric", "perplexity"}},
		{"requires a validation set; use validate", []string{"metric", "f1", "validate", "0"}},
		{"scores: unknown output \"z\"", []string{"metric", "f1", "scores", "z"}},
	} {
		_, err := tune(t, network(1, features, 32, classes), 2,
			append([]string{"data", data, "labels", "label", "epochs", "1"}, c.o...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.o, err, c.want)
		}
	}
}

// Steps with a metric of their own keep it.
func TestWithMetricKeepsTheStepsOwn(t *testing.T) {
	e := Evaluator(func(context.Context, metric.Files) (metric.Value, error) { return metric.Value{}, nil })
	steps := []pass.Options{&FineTune{}, &FineTune{Metric: Agreement}, &Distill{}}
	for i, o := range WithMetric(steps, "f1", "y", nil, "") {
		got, want := fineTune(o), []string{"f1", Agreement, "f1"}[i]
		if got.Metric != want || got.Scores.String() != "y" || fineTune(steps[i]).Scores != nil {
			t.Errorf("step %d: %q %q", i, got.Metric, got.Scores)
		}
	}
	for i, o := range WithMetric(steps, "", "", e, "program") {
		if got := fineTune(o); (got.Evaluator != nil) != (i != 1) {
			t.Errorf("step %d: evaluator %v", i, got.Evaluator != nil)
		}
	}
}

func fineTune(o pass.Options) *FineTune {
	if d, ok := o.(*Distill); ok {
		return (*FineTune)(d)
	}
	return o.(*FineTune)
}
