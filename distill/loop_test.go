package distill

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

func TestOptimizersLearnClasses(t *testing.T) {
	data := samples(t, 600)
	for _, name := range []string{"adam", "adamw", "adam8", "momentum", "sgd"} {
		_, c := trained(t, 2, "data", data, "labels", "label", "epochs", "4", "optimizer", name, "lr", "0.01")
		first, last := c.Loss[0].Y, c.Loss[len(c.Loss)-1].Y
		if agree := c.ValidationAccuracy[len(c.ValidationAccuracy)-1].Y; !(last < first/2) || agree < 0.9 {
			t.Errorf("%s: loss %.3f → %.3f, agreement %.3f", name, first, last, agree)
		}
	}
}

func TestTrainingIsDeterministic(t *testing.T) {
	data := samples(t, 300)
	o := []string{"data", data, "labels", "label", "epochs", "2", "dropout", "0.1", "weight-decay", "0.01", "clip", "1"}
	want, _ := trained(t, 1, o...)
	for _, workers := range []int{2, 3} {
		got, _ := trained(t, workers, o...)
		equal(t, got, want, "other workers")
	}
}

// Each epoch has an order of its own, which depends on the seed.
func TestEpochsAreShuffledDifferently(t *testing.T) {
	first := shuffled(100, 7, 0)
	if !slices.Equal(first, shuffled(100, 7, 0)) {
		t.Error("the order of an epoch is not deterministic")
	}
	for name, other := range map[string][]int{"the next epoch": shuffled(100, 7, 1), "another seed": shuffled(100, 8, 0)} {
		if slices.Equal(first, other) {
			t.Errorf("%s has the same order", name)
		}
		if slices.Sort(other); other[0] != 0 || other[99] != 99 || len(slices.Compact(other)) != 100 {
			t.Errorf("%s does not have every sample once", name)
		}
	}
}

// TestLayoutsTrainEqually: layouts train bit-identically, but for the rounding errors of gradient accumulation and
// float16.
func TestLayoutsTrainEqually(t *testing.T) {
	data := samples(t, 300)
	base := []string{"data", data, "labels", "label", "epochs", "2", "clip", "5"}
	want, plain := trained(t, 2, base...)
	for _, o := range [][]string{
		{"checkpoint", "sqrt"}, {"checkpoint", "light"}, {"checkpoint", "every=2"}, {"checkpoint", "auto"},
		{"offload", "activations"},
		{"memory-budget", "1GiB"},
	} {
		got, _ := trained(t, 2, append(base, o...)...)
		equal(t, got, want, strings.Join(o, " "))
	}
	for _, o := range [][]string{{"accumulate", "4"}, {"offload", "optimizer"}, {"offload", "all", "checkpoint", "auto"}} {
		got, _ := trained(t, 2, append(base, o...)...)
		if d := maxDifference(got, want); d > 1e-3 {
			t.Errorf("%v: weights differ by %g", o, d)
		}
	}
	half, c := trained(t, 2, append(base, "storage", "float16")...)
	if d := maxDifference(half, want); d > 0.05 {
		t.Errorf("float16: weights differ by %g", d)
	}
	if math.Abs(c.ValidationLoss[len(c.ValidationLoss)-1].Y-plain.ValidationLoss[len(plain.ValidationLoss)-1].Y) > 0.01 {
		t.Errorf("float16: loss %v, without %v", c.ValidationLoss, plain.ValidationLoss)
	}
}

// Zeros stay 0 in weights that were pruned, by the metadata or a step of the same run, and in all with --keep-zeros,
// also if training starts from random weights. Zeros of others are trained, which is mentioned.
func TestPrunedWeightsRemainZero(t *testing.T) {
	for _, c := range []struct {
		name, pruned string
		keep         bool
		o            []string
	}{
		{"pruned", `["w0"]`, true, nil},
		{"pruned and initialized", `["w0"]`, true, []string{"reinit", "3"}},
		{"--keep-zeros", "", true, []string{"keep-zeros", "true"}},
		{"--keep-zeros and initialized", "", true, []string{"keep-zeros", "true", "reinit", "3"}},
		{"another is pruned", `["w1"]`, false, nil},
		{"not pruned", "", false, nil},
	} {
		m := network(1, features, 32, classes)
		w := m.Graph.Consts()[0]
		a := array(w.Const.Source.(ir.Mem))
		zero := map[int]bool{}
		for i := range ir.View[float32](a) {
			if i%3 != 0 {
				ir.View[float32](a)[i] = 0
				zero[i] = true
			}
		}
		w.SetConst(&ir.Tensor{Spec: w.Const.Spec, Source: ir.Mem(a.Data)})
		if c.pruned != "" {
			m.Meta = []ir.Entry{{Key: pass.KeyPruned, Value: c.pruned}}
		}
		res, err := tune(t, m, 2, append([]string{"data", samples(t, 300), "labels", "label", "epochs", "2", "lr", "0.01"},
			c.o...)...)
		if err != nil {
			t.Fatal(err)
		}
		changed, kept := 0, 0
		for i, x := range ir.View[float32](array(weights(t, m)[w.Name])) {
			if x != ir.View[float32](a)[i] {
				changed++
			}
			if zero[i] && x == 0 {
				kept++
			}
		}
		if c.keep != (kept == len(zero)) || changed == 0 {
			t.Errorf("%s: %d of %d zeros are kept, %d elements changed", c.name, kept, len(zero), changed)
		}
		if mentioned := slices.ContainsFunc(res.Trainings[0].Chosen, func(s pass.Setting) bool {
			return s.Option == "keep-zeros" && strings.Contains(s.Why, "w0")
		}); mentioned == c.keep {
			t.Errorf("%s: zeros that are trained are mentioned: %v", c.name, mentioned)
		}
	}
}

// A pruning step records the weights that it pruned, which training in the same run and in later ones keeps; a weight
// without channels has none.
func TestPrunedWeightsAreRecorded(t *testing.T) {
	step, err := pass.NewStep(prune.L1{}.Method(), set([]string{"amount", "0.6", "only", "w0"}))
	if err != nil {
		t.Fatal(err)
	}
	m := network(1, features, 32, classes)
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	if _, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 1},
		[]pass.Options{step, finetune(t, "data", samples(t, 100), "labels", "label", "steps", "3", "lr",
			"0.01")}); err != nil {
		t.Fatal(err)
	}
	if got := pass.PrunedWeights(m); len(got) != 1 || !got["w0"] {
		t.Errorf("pruned weights %v", got)
	}
	sparse := 0
	for _, x := range ir.View[float32](array(weights(t, m)["w0"])) {
		if x == 0 {
			sparse++
		}
	}
	if want := 154; sparse != want { // round(0.6 · 256)
		t.Errorf("%d zeros after training, want %d", sparse, want)
	}
}

// TestResume interrupts training and resumes it, within epochs and at their ends.
func TestResume(t *testing.T) {
	data := samples(t, 300)
	base := []string{"data", data, "labels", "label", "epochs", "3", "patience", "3", "dropout", "0.1", "ema", "0.9"}
	want, plain := trained(t, 2, base...)
	for _, c := range []struct {
		layout []string
		stops  []int
	}{
		{nil, []int{5, 13}}, {[]string{"offload", "optimizer"}, []int{5, 13}},
		// The ends of epochs, before their evaluation, and the last step.
		{nil, []int{8, 16, 24}},
	} {
		checkpoint, layout := filepath.Join(t.TempDir(), "checkpoint.zip"), c.layout
		o := append(append(base, "save", checkpoint, "save-every", "2", "resume", "true"), layout...)
		for _, stop := range c.stops {
			stopAfter(t, stop, o...)
		}
		m := network(1, features, 32, 16, classes)
		res, err := tune(t, m, 2, o...)
		if err != nil {
			t.Fatal(err)
		}
		if len(layout) == 0 {
			equal(t, weights(t, m), want, "resumed")
		} else if d := maxDifference(weights(t, m), want); d > 1e-3 {
			t.Errorf("%v: weights differ by %g", layout, d)
		}
		if got := res.Trainings[0]; got.Steps != plain.Steps || len(got.ValidationLoss) != len(plain.ValidationLoss) {
			t.Errorf("%d steps and %d evaluations, want %d and %d", got.Steps, len(got.ValidationLoss), plain.Steps,
				len(plain.ValidationLoss))
		}
	}
}

// stopAfter trains until a step is done.
func stopAfter(t *testing.T, step int, o ...string) {
	t.Helper()
	interrupted(t, step, func() {}, o...)
}

// interrupted trains until a step is done, and calls before then.
func interrupted(t *testing.T, step int, before func(), o ...string) {
	t.Helper()
	s := parse(t, o...)
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	tr := newTrainer(network(1, features, 32, 16, classes), e, 2, s)
	ctx, cancel := stopper(t, tr, step, before)
	defer cancel()
	defer tr.close()
	if err := tr.prepare(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := tr.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tr.train(ctx); err == nil {
		t.Fatal("training was not interrupted")
	}
}

// stopper returns a context that is cancelled after a step, before which it calls a function.
func stopper(t *testing.T, tr *trainer, step int, before func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	tr.progress.notify = func(p pass.Progress) {
		if p.Step == step {
			before()
			cancel()
		}
	}
	return ctx, cancel
}

// Without --save-every there is a checkpoint of each epoch, and one of the last step when training is interrupted.
func TestCheckpointOfEachEpoch(t *testing.T) {
	const epoch = 8 // steps of 32 of the 270 samples that are not held out
	checkpoint := filepath.Join(t.TempDir(), "checkpoint.zip")
	o := []string{"data", samples(t, 300), "labels", "label", "epochs", "3", "save", checkpoint, "resume", "true"}
	for killed, want := range map[bool]int{true: epoch, false: epoch + 3} {
		var then []byte // the checkpoint before the interruption
		interrupted(t, epoch+3, func() {
			var err error
			if then, err = os.ReadFile(checkpoint); err != nil {
				t.Error(err)
			}
		}, o...)
		if killed {
			if err := os.WriteFile(checkpoint, then, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		tr := newTrainer(network(1, features, 32, 16, classes), e, 2, parse(t, o...))
		defer tr.close()
		if err := tr.prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := tr.resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tr.state.Step != want {
			t.Errorf("killed %v: the checkpoint is that of step %d, want %d", killed, tr.state.Step, want)
		}
		if err := os.Remove(checkpoint); err != nil {
			t.Fatal(err)
		}
	}
}

// A checkpoint with a damaged entry is an error, whichever one it is.
func TestDamagedCheckpoint(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "checkpoint.zip")
	o := []string{"data", samples(t, 300), "labels", "label", "epochs", "2", "save", checkpoint, "resume", "true"}
	stopAfter(t, 11, o...)
	whole, err := os.ReadFile(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range z.File {
		at, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		damaged[at+int64(f.UncompressedSize64)/2] ^= 1
		if err := os.WriteFile(checkpoint, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tune(t, network(1, features, 32, 16, classes), 2, o...); !errors.Is(err, zip.ErrChecksum) {
			t.Errorf("%s is damaged: error %v", f.Name, err)
		}
		names[f.Name] = true
	}
	if !names["best"] {
		t.Errorf("no snapshot of the best weights in %v", names)
	}
}

// Momentum 0 is gradient descent; the first step is the same with any momentum, and the second is not.
func TestMomentum(t *testing.T) {
	data := samples(t, 300)
	of := func(optimizer, steps string, o ...string) map[string][]byte {
		w, _ := trained(t, 2, append([]string{"data", data, "labels", "label", "lr", "0.01", "schedule", "constant", "warmup",
			"0", "optimizer", optimizer, "steps", steps}, o...)...)
		return w
	}
	for _, c := range []struct {
		steps, momentum string
		same            bool
	}{{"2", "0", true}, {"1", "0.9", true}, {"2", "0.9", false}} {
		plain, got := of("sgd", c.steps), of("momentum", c.steps, "momentum", c.momentum)
		if d := maxDifference(plain, got); (d == 0) != c.same {
			t.Errorf("%s steps with momentum %s: weights differ by %g from those without", c.steps, c.momentum, d)
		}
	}
}

func TestCheckpointOfOtherOptions(t *testing.T) {
	data, checkpoint := samples(t, 300), filepath.Join(t.TempDir(), "checkpoint.zip")
	o := []string{"data", data, "labels", "label", "epochs", "1", "save", checkpoint, "resume", "true"}
	trained(t, 2, o...)
	m := network(1, features, 32, 16, classes)
	if _, err := tune(t, m, 2, append(o, "lr", "0.5")...); err == nil || !strings.Contains(err.Error(), "other options") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(checkpoint, []byte("not an archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tune(t, network(1, features, 32, 16, classes), 2, o...); err == nil ||
		!strings.Contains(err.Error(), "--resume") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidOptions(t *testing.T) {
	data := samples(t, 300)
	for _, c := range []struct {
		want string
		o    []string
	}{
		{"use data", nil},
		{"is not one of adam, adamw", []string{"data", data, "optimizer", "magic"}},
		{"not a multiple", []string{"data", data, "batch", "10", "accumulate", "3"}},
		{"requires labels", []string{"data", data, "columns", "f0,f1,f2,f3,f4,f5,f6,f7", "loss", "cross-entropy"}},
		{"smaller --batch", []string{"data", data, "labels", "label", "batch", "1000"}},
		{"none, light, sqrt, every=N", []string{"data", data, "labels", "label", "checkpoint", "often"}},
		{"the process needs at least", []string{"data", data, "labels", "label", "memory-budget", "1KiB"}},
		{"the loss is", []string{"data", data, "labels", "label", "lr", "100", "optimizer", "sgd", "weight-decay", "100",
			"epochs", "9"}},
	} {
		_, err := tune(t, network(1, features, 32, 16, classes), 2, c.o...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %v, want %q", c.o, err, c.want)
		}
	}
}

func TestNaNBeforeTraining(t *testing.T) {
	m := network(1, features, 16, classes)
	for _, v := range m.Graph.Consts() {
		if len(v.Const.Shape) == 1 {
			nan := ir.ArrayOf(slices.Repeat([]float32{float32(math.NaN())}, int(v.Const.Shape[0])), v.Const.Shape...)
			v.Const = &ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem(nan.Data)}
		}
	}
	_, err := tune(t, m, 2, "data", samples(t, 300), "labels", "label")
	if err == nil || !strings.Contains(err.Error(), "the validation loss is NaN before the first step") {
		t.Errorf("got %v", err)
	}
}

// The times of a training's activities are those of the whole run, and its samples those of its steps.
func TestProgress(t *testing.T) {
	tr := ready(t, network(1, features, 16, classes), "data", samples(t, 300), "labels", "label", "epochs",
		"2", "batch", "30")
	var all []pass.Progress
	tr.progress.notify = func(p pass.Progress) { all = append(all, p) }
	began := time.Now()
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	const steps = 2 * 9 // 270 of 300 samples are not held out
	if len(all) != steps+1 {
		t.Fatalf("%d calls for %d steps and the end", len(all), steps)
	}
	for i, p := range all {
		done := min(i+1, steps)
		if p.Done != (i == steps) || p.Step != done || p.Steps != steps || p.Ran != done || p.Samples != 30*done ||
			p.Method != "finetune" {
			t.Errorf("call %d: %+v", i, p)
		}
	}
	end := all[steps]
	if sum := end.Wait + end.Compute + end.Evaluate + end.Save; sum > took {
		t.Errorf("the activities %+v take %v of %v", end, sum, took)
	}
	if l := end.Loading; l.Samples != 30*steps || l.Bytes <= 0 || l.SamplesPerSecond() <= 0 || end.Bottleneck() == "" {
		t.Errorf("loading of the training samples: %+v, bottleneck %q", l, end.Bottleneck())
	}
	if end.Wait == 0 || end.Compute == 0 || end.Evaluate == 0 || end.Save != 0 {
		t.Errorf("activities without time, or checkpoints that were not requested: %+v", end)
	}
}
