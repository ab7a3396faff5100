package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The section defaults compares training with default options with hand-made settings: each run trains on the same
// images for at most two epochs. Finished runs are lines of the file defaults.txt in the bench's folder, which are not
// run again.

// A beginner is a model that is compressed and trained.
type beginner struct {
	name string
	path func(b *bench, ctx context.Context) (string, error)
	data func(b *bench) split
}

var beginners = []beginner{
	{"mnist_cnn_max3", sharedModel("vision/mnist_cnn_max3"), mnistPart(byte255)},
	{"mnist_sigmoid", sharedModel("vision/mnist_sigmoid"), mnistPart(byte255)},
	{"mnist_softmax_head", sharedModel("vision/mnist_softmax_head"), mnistPart(byte255)},
	{"LeNet-300-100", (*bench).trainedLenet, mnistPart(byte255)},
	{"cnn", fixtureModel("cnn"), digits},
	{"mnist_cntk", sharedModel("vision/mnist_cntk"), mnistPart("1")},
	{"mnist_self_attention", sharedModel("transformer/mnist_self_attention"), mnistPart(byte255)},
}

// lessons are what is trained: a pruned model, quantization-aware training, or a student of half the width.
var lessons = []struct {
	name  string
	prune string   // amount; empty for none
	train []string // the command, without the model
}{
	{"pruned, 0.5", "0.5", []string{"finetune"}},
	{"pruned, 0.8", "0.8", []string{"finetune"}},
	{"pruned, 0.9", "0.9", []string{"finetune"}},
	{"QAT, int4", "", []string{"finetune", "--qat", "weight-int4"}},
	{"QAT, int2", "", []string{"finetune", "--qat", "weight-int2 per-channel"}},
	{"distilled, half the width", "", []string{"distill"}},
}

// handMade are the settings that defaults are compared with.
var handMade = []string{
	"adam 3e-4", "adam 1e-3", "adam 3e-3", "adam 1e-2",
	"adamw 3e-4", "adamw 1e-3", "adamw 3e-3", "adamw 1e-2",
	"momentum 3e-3", "momentum 1e-2", "momentum 3e-2", "momentum 1e-1",
}

const (
	byDefault  = "default"
	partOfData = "10000" // training images of MNIST
	fewEpochs  = "2"
	margin     = 0.01 // of the accuracy, within which defaults are as good as the best setting
)

// defaultRuns are the results of the section.
type defaultRuns struct {
	*bench
	*results
}

// A lessonRun is one training.
type lessonRun struct {
	model, lesson int
	setting       string
	seed          int
}

func (r lessonRun) name() string {
	return strings.Join([]string{beginners[r.model].name, lessons[r.lesson].name, r.setting, strconv.Itoa(r.seed)},
		"\t")
}

// defaults compares training with default options with hand-made settings.
func (b *bench) defaults(ctx context.Context) (string, error) {
	ended, err := openResults(b.trainFile("defaults.txt"))
	if err != nil {
		return "", err
	}
	c := &defaultRuns{b, ended}
	for _, m := range beginners { // models are made before jobs share them
		if _, err := m.path(b, ctx); err != nil {
			return "", err
		}
	}
	if err := c.runAll(ctx); err != nil {
		return "", err
	}
	return c.table(), nil
}

// all lists the runs, seed by seed, so that the table has complete seeds if not all of them are run.
func (c *defaultRuns) all() []lessonRun {
	var runs []lessonRun
	for _, seed := range seeds {
		for m := range beginners {
			for l := range lessons {
				for _, s := range append([]string{byDefault}, handMade...) {
					runs = append(runs, lessonRun{m, l, s, seed})
				}
			}
		}
	}
	return runs
}

// runAll runs what is left, -jobs at a time, for at most -minutes.
func (c *defaultRuns) runAll(ctx context.Context) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.limit > 0 {
		limited, cancel = context.WithTimeout(ctx, c.limit)
	}
	defer cancel()
	left := make(chan lessonRun)
	errs := make([]error, max(1, c.jobs))
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() {
			for r := range left {
				if errs[i] == nil && limited.Err() == nil {
					errs[i] = c.run(limited, r, i)
				}
			}
		})
	}
	for _, r := range c.all() {
		if _, ok := c.known(r.name()); !ok {
			left <- r
		}
	}
	close(left)
	done.Wait()
	if limited.Err() != nil && ctx.Err() == nil {
		return nil // the table has what was run
	}
	return errors.Join(errs...)
}

// run trains and evaluates a model.
func (c *defaultRuns) run(ctx context.Context, r lessonRun, job int) error {
	_, err := c.once(r.name(), func() (float64, error) { return c.train(ctx, r, job) })
	return err
}

func (c *defaultRuns) train(ctx context.Context, r lessonRun, job int) (float64, error) {
	m, l := beginners[r.model], lessons[r.lesson]
	model, err := m.path(c.bench, ctx)
	if err != nil {
		return 0, err
	}
	file := func(name string) string { return c.trainFile(fmt.Sprintf("defaults.%d.%s.onnx", job, name)) }
	args := slices.Clone(l.train)
	switch {
	case l.prune != "":
		if _, err := c.do(ctx, "prune", model, "-o", file("pruned"), "--method", "l1",
			"--amount", l.prune); err != nil {
			return 0, err
		}
		args = append(args, file("pruned"))
	case args[0] == "distill":
		args = append(args, "--teacher", model, "--derive", "channel", "--amount", "0.5")
	default:
		args = append(args, model)
	}
	if r.setting != byDefault {
		optimizer, rate, _ := strings.Cut(r.setting, " ")
		args = append(args, "--optimizer", optimizer, "--lr", rate)
	}
	args = append(args, "-o", file("trained"), "--epochs", fewEpochs, "--seed", strconv.Itoa(r.seed))
	data := m.data(c.bench)
	if _, err := c.learn(ctx, data.train, args...); err != nil {
		if r.setting != byDefault && ctx.Err() == nil && strings.Contains(err.Error(), "exit status 4") {
			return 0, nil // diverged: the run with default options did not fail
		}
		return 0, err
	}
	return c.bench.accuracy(ctx, file("trained"), data.test)
}

// table is the section of the document.
func (c *defaultRuns) table() string {
	var t strings.Builder
	t.WriteString("## Training with default options\n\n")
	fmt.Fprintf(&t, "Accuracy in %% on test images, of `finetune` and `distill` with `--epochs %s`: with default options, and with the best of %d hand-made settings\n(`--optimizer` and `--lr`, the other options by default), each the mean of seeds. MNIST: %s training images, %d test images; cnn: digits of `fixtures`.\nThe best setting is chosen on the test images, the defaults on training images.\n\n", fewEpochs, len(handMade), partOfData, tested)
	t.WriteString("| model | training | seeds | default | best of 12 | setting | difference, points |\n|---|---|---:|---:|---:|---|---:|\n")
	rows, within := 0, 0
	for m := range beginners {
		for l := range lessons {
			row, ok := c.row(m, l)
			if row == "" {
				continue
			}
			t.WriteString(row)
			rows++
			if ok {
				within++
			}
		}
	}
	fmt.Fprintf(&t, "\nDefaults are at most %.0f point below the best setting in %d of %d rows.", 100*margin, within,
		rows)
	if n := len(c.all()); len(c.value) < n {
		fmt.Fprintf(&t, " %d of %d runs are done; rows have complete seeds only.", len(c.value), n)
	}
	return t.String() + "\n"
}

// row is a row of the table, empty without a complete seed; ok reports whether the default is within the margin.
func (c *defaultRuns) row(model, lesson int) (row string, ok bool) {
	sums, n := map[string]float64{}, 0
	for _, seed := range seeds {
		of := map[string]float64{}
		for _, s := range append([]string{byDefault}, handMade...) {
			if x, ok := c.known(lessonRun{model, lesson, s, seed}.name()); ok {
				of[s] = x
			}
		}
		if len(of) <= len(handMade) {
			continue
		}
		for s, x := range of {
			sums[s] += x
		}
		n++
	}
	if n == 0 {
		return "", false
	}
	best := slices.MaxFunc(handMade, func(a, b string) int { return cmp.Compare(sums[a], sums[b]) })
	mine, other := sums[byDefault]/float64(n), sums[best]/float64(n)
	return fmt.Sprintf("| %s | %s | %d | %s | %s | `%s` | %+.2f |\n", beginners[model].name, lessons[lesson].name, n,
		percent(mine), percent(other), best, 100*(mine-other)), mine >= other-margin
}

func sharedModel(name string) func(*bench, context.Context) (string, error) {
	return func(b *bench, _ context.Context) (string, error) {
		return filepath.Join(b.shared, "fixtures", "models", name, "model.onnx"), nil
	}
}

func fixtureModel(name string) func(*bench, context.Context) (string, error) {
	return func(*bench, context.Context) (string, error) { return filepath.Join("fixtures", name+".onnx"), nil }
}

// mnistPart is MNIST with some of the training images.
func mnistPart(scale string) func(*bench) split {
	return func(b *bench) split {
		s := b.mnist(scale)
		s.train = append(s.train, "--limit", partOfData)
		return s
	}
}

// digits is the data of fixtures.
func digits(*bench) split {
	return split{[]string{"--data", "fixtures/digits_train.npz"}, []string{"--data", "fixtures/digits_test.npz"}}
}

// trainedLenet is LeNet-300-100, trained on all images.
func (b *bench) trainedLenet(ctx context.Context) (string, error) {
	out := b.trainFile("lenet.start.onnx")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	in, err := b.net(ctx, lenetUnits)
	if err != nil {
		return "", err
	}
	c := b.mnist(byte255)
	_, err = b.learn(ctx, c.train, "finetune", in, "-o", out, "--epochs", "3", "--batch", "32", "--lr", "1e-3",
		"--optimizer", "adam", "--reinit", "1")
	return out, err
}
