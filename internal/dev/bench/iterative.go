package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// pruningSeeds are those of initialization and of the order of samples.
var pruningSeeds = []string{"1", "2", "3"}

// Hyperparameters that training on 54,000 images chose by the other 6,000: of 10 steps of 2 and 4 epochs and 5 steps of
// 4 and 8, learning rates of 1e-3 and 3e-3, and 40 epochs of fine-tuning afterwards at 1e-3 and 3e-4.
var (
	iterativeDense = []string{"--epochs", "12", "--batch", "128", "--lr", "1e-3"}
	iterativeTrain = []string{"--batch", "128", "--lr", "3e-3"}
	iterativeSteps = []string{"--schedule", "cubic", "--steps", "10", "--epochs", "4"}
	iterativeTuned = []string{"--epochs", "40", "--batch", "128", "--lr", "1e-3", "--patience", "0"}
	oneShotSteps   = []string{"--schedule", "constant", "--steps", "1", "--epochs", "80", "--patience", "0"}
)

// iterative compares iterative pruning with pruning in one step and as many training steps, and movement pruning with
// both.
func (b *bench) iterative(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "## Iterative pruning\n\nLeNet-300-100 on MNIST, trained by `finetune %s --seed SEED --reinit SEED`, then pruned by\n`prune --method l1-global --amount 0.95 %s --seed SEED --teacher DENSE`: one-shot `%s`, iterative\n`%s`, then `finetune %s --teacher DENSE`. Learning rates, steps and epochs were chosen on 6,000 of the 60,000 training images, which no\ntraining has. Accuracy in %%, on %d test images; 0.02 points are one image.\n",
		strings.Join(iterativeDense, " "), strings.Join(iterativeTrain, " "), strings.Join(oneShotSteps, " "),
		strings.Join(iterativeSteps, " "), strings.Join(iterativeTuned, " "), tested)
	in, err := b.net(ctx, lenetUnits)
	if err != nil {
		return "", err
	}
	for _, c := range []struct {
		title, file string
		augment     []string
	}{
		{"All trainings with `--augment shift=1`", "iterative", []string{"--augment", "shift=1"}},
		{"Without augmentation", "plain", nil},
	} {
		t.WriteString("\n" + c.title + ":\n\n| seed | dense | one-shot, 95 % pruned | drop, points | iterative, 95 % pruned | drop, points |\n|---|---:|---:|---:|---:|---:|\n")
		var sum [3]float64
		for _, seed := range pruningSeeds {
			accuracies, err := b.prunedLenet(ctx, in, c.file, seed, c.augment)
			if err != nil {
				return "", err
			}
			for i, a := range accuracies {
				sum[i] += a / float64(len(pruningSeeds))
			}
			pruningRow(&t, seed, accuracies)
		}
		pruningRow(&t, "mean", sum)
	}
	text, err := b.movement(ctx)
	return t.String() + text, err
}

func pruningRow(t *strings.Builder, name string, a [3]float64) {
	fmt.Fprintf(t, "| %s | %s | %s | %s | %s | %s |\n", name, percent(a[0]), percent(a[1]), percent(a[0]-a[1]),
		percent(a[2]), percent(a[0]-a[2]))
}

// prunedLenet returns the accuracies of a dense model, and of it pruned in one step and iteratively.
func (b *bench) prunedLenet(ctx context.Context, in, file, seed string, augment []string) (accuracies [3]float64,
	err error) {
	c := b.mnist(byte255)
	path := func(name string) string { return b.trainFile(file + "." + name + "." + seed + ".onnx") }
	dense, oneShot, cubic, tuned := path("dense"), path("one-shot"), path("cubic"), path("tuned")
	prune := append([]string{"prune", dense, "--method", "l1-global", "--amount", "0.95", "--teacher", dense},
		iterativeTrain...)
	for _, step := range []struct {
		out  string
		args []string
	}{
		{dense, append([]string{"finetune", in, "--reinit", seed}, iterativeDense...)},
		{oneShot, slices.Concat(prune, oneShotSteps)},
		{cubic, slices.Concat(prune, iterativeSteps)},
		{tuned, append([]string{"finetune", cubic, "--teacher", dense}, iterativeTuned...)},
	} {
		if _, err := b.learnedOnce(ctx, c.train, step.out,
			slices.Concat(step.args, augment, []string{"--seed", seed})...); err != nil {
			return accuracies, err
		}
	}
	for i, path := range []string{dense, oneShot, tuned} {
		if accuracies[i], err = b.accuracy(ctx, path, c.test); err != nil {
			return accuracies, err
		}
	}
	return accuracies, nil
}

// learnedOnce trains a model, unless an earlier run did.
func (b *bench) learnedOnce(ctx context.Context, data []string, out string, args ...string) (t pass.Training,
	err error) {
	if text, err := os.ReadFile(out + ".json"); err == nil {
		return t, json.Unmarshal(text, &t)
	}
	if t, err = b.learn(ctx, data, append(args, "-o", out)...); err != nil {
		return t, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	return t, os.WriteFile(out+".json", text, 0o644)
}

// Pruning while fine-tuning on other digits, with as many training steps each.
var (
	transferMethods = []struct {
		name string
		args []string
	}{
		{"one-shot `l1-global`", []string{"--method", "l1-global", "--schedule", "constant", "--steps", "1",
			"--epochs", "12"}},
		{"iterative `l1-global`", []string{"--method", "l1-global", "--schedule", "cubic", "--steps", "6",
			"--epochs", "2"}},
		{"`movement`", []string{"--method", "movement", "--schedule", "cubic", "--steps", "5", "--epochs", "2"}},
	}
	transferAmounts = []string{"0.9", "0.97"}
	transferRates   = []string{"1e-3", "3e-3", "1e-2", "3e-2"}
)

// movement compares movement pruning with magnitude pruning on a transfer task.
func (b *bench) movement(ctx context.Context) (string, error) {
	for _, name := range []string{"low", "high", "test"} {
		if _, err := b.made(ctx, "train/digits."+name+".npz", "digits", name, b.shared); err != nil {
			return "", err
		}
	}
	of := func(name string) []string { return []string{"--data", b.trainFile("digits." + name + ".npz")} }
	in, err := b.net(ctx, lenetUnits)
	if err != nil {
		return "", err
	}
	source := b.trainFile("movement.source.onnx")
	if _, err := b.learnedOnce(ctx, of("low"), source, "finetune", in, "--epochs", "3", "--batch", "128",
		"--lr", "1e-3", "--reinit", "1"); err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "\nTransfer: the same network, trained on the digits 0 to 4, is fine-tuned and pruned on 5,000 images of the digits 5 to 9, with 12 epochs in all, `--batch 50 --patience 0`.\nThe learning rate of each method is that of the highest accuracy on 500 of these images, mean of seeds, of %s; accuracy in %% on the test images of these digits.\n\n", strings.Join(transferRates, ", "))
	t.WriteString("| pruned | method | learning rate | validation | test, seeds " + strings.Join(pruningSeeds, ", ") +
		" | mean |\n|---|---|---:|---:|---:|---:|\n")
	for _, amount := range transferAmounts {
		for _, m := range transferMethods {
			row, err := b.transferRow(ctx, source, amount, m.name, m.args, of)
			if err != nil {
				return "", err
			}
			t.WriteString(row)
		}
	}
	return t.String(), nil
}

// transferRow is the row of a method with the learning rate of the highest validation accuracy.
func (b *bench) transferRow(ctx context.Context, source, amount, name string, method []string,
	of func(string) []string) (string, error) {
	best, at := -1.0, ""
	path := func(rate, seed string) string {
		return b.trainFile(strings.NewReplacer(" ", "-", "`",
			"").Replace("movement." + name + "." + amount + "." + rate + "." + seed + ".onnx"))
	}
	for _, rate := range transferRates {
		mean := 0.0
		for _, seed := range pruningSeeds {
			args := append([]string{"prune", source, "--amount", amount, "--batch", "50", "--patience", "0",
				"--lr", rate, "--seed", seed}, method...)
			t, err := b.learnedOnce(ctx, of("high"), path(rate, seed), args...)
			if err != nil {
				return "", err
			}
			mean += *t.Pruning[len(t.Pruning)-1].Accuracy / float64(len(pruningSeeds))
		}
		if mean > best {
			best, at = mean, rate
		}
	}
	var tests []string
	mean := 0.0
	for _, seed := range pruningSeeds {
		a, err := b.accuracy(ctx, path(at, seed), of("test"))
		if err != nil {
			return "", err
		}
		tests, mean = append(tests, percent(a)), mean+a/float64(len(pruningSeeds))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", amount, name, at, percent(best),
		strings.Join(tests, ", "), percent(mean)), nil
}
