package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// byte255 is the factor for pixels from 0 to 255 that a model takes from 0 to 1.
const byte255 = "0.00392156862745098"

// A split is training data and test data, as flags.
type split struct{ train, test []string }

// mnist is the split of MNIST: 60,000 training images, and the shared test images, 5,000 of 10,000. Pixels are
// multiplied by scale.
func (b *bench) mnist(scale string) split {
	of := func(name string) []string {
		path := filepath.Join(b.shared, "fixtures", "datasets", "mnist", name)
		return []string{"--data", path + "-images-idx3-ubyte.gz", "--labels", path +
			"-labels-idx1-ubyte.gz", "--scale", scale}
	}
	return split{of("train"), of("t10k-even")}
}

// tested is the number of test images of mnist.
const tested = 5000

// do runs a command that writes a model, without options that cost time and are not measured here, and returns its
// report.
func (b *bench) do(ctx context.Context, args ...string) (*report.Report, error) {
	return b.doIn(ctx, "", args...)
}

// doIn runs such a command in a folder, "" for the working folder.
func (b *bench) doIn(ctx context.Context, folder string, args ...string) (*report.Report, error) {
	fmt.Fprintln(os.Stderr, "mcompress", strings.Join(args, " "))
	tool, err := filepath.Abs(b.tool)
	if err != nil {
		return nil, err
	}
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, tool, append(args, "--json", "--report", "none",
		"--no-verify", "--no-sync", "--digest", "none", "--workers", engineThreads, "--quiet")...)
	cmd.Dir, cmd.Stderr = folder, &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, last(complaint.String()))
	}
	r := &report.Report{}
	return r, json.Unmarshal(out, r)
}

// learn runs finetune, distill, or prune with training. With -quick it takes few steps.
func (b *bench) learn(ctx context.Context, data []string, args ...string) (pass.Training, error) {
	args = append(args, data...)
	switch {
	case b.quick && args[0] == "prune":
		args = append(args, "--training-steps", "5")
	case b.quick:
		args = append(args, "--steps", "5")
	}
	r, err := b.do(ctx, args...)
	if err != nil {
		return pass.Training{}, err
	}
	if len(r.Training) != 1 {
		return pass.Training{}, fmt.Errorf("%s: %d trainings, want 1", args[0], len(r.Training))
	}
	return r.Training[0], nil
}

// accuracy is the top-1 accuracy of a model.
func (b *bench) accuracy(ctx context.Context, model string, evaluate []string) (float64, error) {
	args := append([]string{"--json", "verify", model, "--batch", "50"}, evaluate...)
	out, err := exec.CommandContext(ctx, b.tool, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("verify %s: %w", model, err)
	}
	var facts struct{ Verification verification.Result }
	if err := json.Unmarshal(out, &facts); err != nil {
		return 0, err
	}
	if facts.Verification.Accuracy == nil {
		return 0, fmt.Errorf("verify %s: no accuracy", model)
	}
	return facts.Verification.Accuracy.After, nil
}

// errorsOf is the number of errors on the test images of mnist.
func (b *bench) errorsOf(ctx context.Context, model string, c split) (int, error) {
	fraction, err := b.accuracy(ctx, model, c.test)
	return int((1-fraction)*tested + 0.5), err
}

// trainFile is a path in the bench's folder for training.
func (b *bench) trainFile(name string) string { return filepath.Join(b.dir, "train", name) }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) }
