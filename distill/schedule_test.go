package distill

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// The search raises the rate by half a decade at a time, past one rate that is worse, and down only if no larger rate
// is better.
func TestDescend(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		first int // the number of the first loss
		loss  []float64
		want  int
		calls int
	}{
		{"upwards", 0, []float64{5, 4, 3, 2, 3, 4}, 3, 6},
		{"past noise", 0, []float64{5, 6, 3, 4, 5}, 2, 5},
		{"not past two worse rates", 0, []float64{5, 6, 7, 1}, 0, 5},
		{"downwards", -4, []float64{9, 9, 3, 4, 5, 6, 7}, -2, 7},
		{"the start", -2, []float64{6, 6, 5, 6, 6}, 0, 5},
		{"less than 2 percent", -2, []float64{4.95, 4.95, 5, 6, 6}, 0, 5},
		{"from divergence", -6, []float64{4, 3, 2, inf, inf, inf, inf, inf, inf}, -4, 9},
	} {
		calls := 0
		best, err := descend(func(k int) (float64, error) {
			calls++
			if i := k - c.first; i >= 0 && i < len(c.loss) {
				return c.loss[i], nil
			}
			return 4.99, nil
		})
		if err != nil || best != c.want || calls != c.calls {
			t.Errorf("%s: %d after %d calls, %v; want %d after %d", c.name, best, calls, err, c.want, c.calls)
		}
	}
}

// Trials leave no trace: training is bit-identical to one with the chosen rate, in all layouts, and for any number of
// worker threads.
func TestTrialsLeaveNoTrace(t *testing.T) {
	data := samples(t, 300)
	for _, o := range [][]string{{}, {"accumulate", "4"}, {"offload", "optimizer"}, {"storage", "float16"},
		{"dropout", "0.1", "ema", "0.9"}} {
		o = append([]string{"data", data, "labels", "label", "epochs", "5"}, o...)
		got, c := trained(t, 2, o...)
		rate := chosen(t, c, "lr")
		want, _ := trained(t, 1, append(o, "lr", rate)...)
		equal(t, got, want, strings.Join(o[6:], " "))
		if x, err := strconv.ParseFloat(rate, 64); err != nil || x < 1e-3 || x > 1 {
			t.Errorf("%v: learning rate %s", o[6:], rate)
		}
	}
}

// chosen returns the value that was chosen for an option.
func chosen(t *testing.T, c pass.Training, option string) string {
	t.Helper()
	i := slices.IndexFunc(c.Chosen, func(s pass.Setting) bool { return s.Option == option })
	if i < 0 {
		t.Fatalf("--%s was not chosen: %v", option, c.Chosen)
	}
	return c.Chosen[i].Value
}

// A model whose loss is far above that of equal probabilities, such as one with inputs of a larger scale than it was
// trained with, keeps a rate at which it learns: the rate with the lowest loss of a trial destroys it.
func TestRateOfALargeStart(t *testing.T) {
	for _, c := range []struct {
		start, least, equal float64
		want                bool
	}{
		{600, 2.4, math.Log(10), true}, {600, 2.1, math.Log(10), false}, {2.4, 2.3, math.Log(10), false},
		{600, 2.4, 0, false},
	} {
		if got := destroys(c.start, c.least, c.equal); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
	tr := ready(t, network(1, features, 32, classes), "data", samples(t, 300), "labels", "label")
	if got := tr.schedule.trials.equalProbabilities(); got != math.Log(classes) {
		t.Errorf("equal probabilities: %v", got)
	}
}

// A trial that diverges has an infinite loss, and restores the weights.
func TestTrialThatDiverges(t *testing.T) {
	tr := ready(t, network(1, features, 32, classes), "data", samples(t, 300), "labels", "label", "optimizer", "sgd",
		"weight-decay", "1")
	before := bytes.Clone(tr.params.weights[0].array.Data)
	tr.state.init(false)
	_, loss, err := tr.schedule.trials.run(t.Context(), 1e30, trialSteps)
	if err != nil || !math.IsInf(loss, 1) {
		t.Errorf("loss %v, %v", loss, err)
	}
	if !bytes.Equal(tr.params.weights[0].array.Data, before) {
		t.Error("weights changed")
	}
}

// Few samples have smaller batches and more epochs.
func TestOptionsOfSmallData(t *testing.T) {
	for _, c := range []struct{ samples, unit, batch, epochs int }{
		{54000, 1, 32, 3}, {3200, 1, 32, 3}, {3199, 1, 32, 4}, {900, 1, 32, 11}, {256, 1, 32, 38}, {255, 1, 16, 20},
		{90, 1, 8, 28}, {9, 1, 1, 34},
		{2, 1, 1, 100}, {900, 5, 30, 10}, {90, 20, 20, 75}, {900, 48, 48, 17},
	} {
		s := newSettings(FineTune{Validate: new(float64)}, "finetune", automatic)
		s.chooseBatch(c.samples, c.unit)
		s.resolve(c.samples / s.Batch)
		if s.Batch != c.batch || s.Epochs != c.epochs {
			t.Errorf("%d samples: %d epochs of batches of %d, want %d of %d", c.samples, s.Epochs, s.Batch, c.epochs, c.batch)
		}
	}
}

func TestPatience(t *testing.T) {
	given := 2
	for _, c := range []struct {
		steps    int
		validate float64
		patience *int
		want     int
	}{{30, 0.1, nil, 3}, {200, 0.1, nil, 6}, {200, 0, nil, 0}, {200, 0.1, &given, 2}} {
		s := newSettings(FineTune{Validate: &c.validate, Patience: c.patience}, "finetune", automatic)
		s.resolvePatience(c.steps, 10)
		if *s.Patience != c.want {
			t.Errorf("%v: patience %d", c, *s.Patience)
		}
	}
}

// Training that stopped early does not continue when it is resumed.
func TestResumeAfterEarlyStopping(t *testing.T) {
	o := []string{
		"data", samples(t, 300), "labels", "label", "epochs", "20", "lr", "1e-9", "patience", "2", "metric", "top1",
		"save", filepath.Join(t.TempDir(), "checkpoint.zip"), "resume", "true",
	}
	_, first := trained(t, 2, o...)
	if first.Steps >= 20*8 {
		t.Fatalf("%d steps: training did not stop early", first.Steps)
	}
	if _, again := trained(t, 2, o...); again.Steps != first.Steps {
		t.Errorf("%d steps after resuming, want %d", again.Steps, first.Steps)
	}
}

// Checkpoints of another format are refused.
func TestCheckpointOfAnotherFormat(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "checkpoint.zip")
	f, err := os.Create(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	if err := errors.Join(writeEntry(z, stateEntry, []byte(`{"Options": ""}`)), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = tune(t, network(1, features, 32, classes), 2, "data", samples(t, 300), "labels", "label", "save", checkpoint,
		"resume", "true")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("format 0, this version reads %d", checkpointVersion)) {
		t.Errorf("got %v", err)
	}
}

// A time is a number of steps once training has begun, which repeats it.
func TestTime(t *testing.T) {
	data := samples(t, 300)
	o := []string{"data", data, "labels", "label", "patience", "0"}
	m := network(1, features, 32, 16, classes)
	res, err := tune(t, m, 2, append(o, "time", "300ms")...)
	if err != nil {
		t.Fatal(err)
	}
	repeat := res.Steps[0].(FineTune)
	if repeat.Time != 0 || repeat.Steps != res.Trainings[0].Steps || repeat.Steps == 0 || repeat.LR == 0 {
		t.Fatalf("%d steps were done; the options that repeat them: %+v", res.Trainings[0].Steps, repeat)
	}
	want, _ := trained(t, 1, append(o, "steps", strconv.Itoa(repeat.Steps), "lr",
		strconv.FormatFloat(repeat.LR, 'g', -1, 64))...)
	equal(t, weights(t, m), want, "time")
}

// The average is that of the formula, and it is kept if it is better.
func TestAverage(t *testing.T) {
	p := &parameter{array: ir.ArrayOf([]float32{1, 2}, 2)}
	ps := &parameters{weights: []*parameter{p}}
	a, want := newAverage(0.5, ps), []float64{1, 2}
	for step := 1; step <= 9; step++ {
		d := min(0.5, float64(1+step)/float64(10+step))
		for i, w := range ir.View[float32](p.array) {
			ir.View[float32](p.array)[i] = w + float32(step)
			want[i] = d*want[i] + (1-d)*float64(w+float32(step))
		}
		a.addStep(ps, step)
	}
	a.swap(ps)
	for i, got := range ir.View[float32](p.array) {
		if math.Abs(float64(got)-want[i]) > 1e-5 {
			t.Errorf("element %d: %v, want %v", i, got, want[i])
		}
	}
	res, err := tune(t, network(1, 2, 32, classes), 2, "data", samples(t, 300), "columns", "f0,f1", "labels", "label",
		"lr", "0.1", "batch", "4", "epochs", "2", "schedule", "constant", "ema", "0.95")
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Trainings[0]; !c.Averaged {
		t.Errorf("the average of weights at a constant large rate was not kept: %v", c.ValidationLoss)
	}
}

// Training that does not improve the model skips its weights, and leaves them as they were.
func TestStartIsKept(t *testing.T) {
	m := network(1, features, 32, 16, classes)
	want := weights(t, m)
	res, err := tune(t, m, 2, "data", samples(t, 300), "labels", "label", "lr", "1e-30", "epochs", "1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, weights(t, m), want, "kept")
	if res.Trainings[0].Kept != 0 || res.Changed() {
		t.Errorf("step %d was kept, changed %v", res.Trainings[0].Kept, res.Changed())
	}
	for _, row := range res.Rows {
		if row.Before.Shape != nil && row.Reason.Code != pass.NotImproved {
			t.Errorf("%s: %s %s", row.Tensor, row.Status, row.Reason.Code)
		}
	}
}
