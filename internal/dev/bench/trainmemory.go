package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// layouts are ways to save memory, the first one without any.
var layouts = []struct {
	name string
	set  map[string]string
}{
	{"none", nil},
	{"`--checkpoint light`", map[string]string{"checkpoint": "light"}},
	{"`--checkpoint sqrt`", map[string]string{"checkpoint": "sqrt"}},
	{"`--checkpoint auto`", map[string]string{"checkpoint": "auto"}},
	{"`--checkpoint every=3 --storage float16`", map[string]string{"checkpoint": "every=3", "storage": "float16"}},
	{"`--checkpoint auto --storage float16`", map[string]string{"checkpoint": "auto", "storage": "float16"}},
}

// trainMemory measures activation checkpointing, and trains a student under a budget.
func (b *bench) trainMemory(ctx context.Context) (string, error) {
	plain := resnet
	plain.set = map[string]string{"optimizer": "sgd", "lr": "1e-3", "batch-statistics": "true"}
	took, err := b.layoutTimes(ctx, plain)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Memory of a training step\n\n")
	fmt.Fprintf(&t, "ResNet18 shape, 224×224×3, batch 8, SGD, %s threads. The arena holds activations, gradients and scratch, as planned; resident\n", engineThreads)
	t.WriteString("is the peak memory of the training process, weights (45 MiB) and samples included. Median time of a step, interleaved.\n\n")
	t.WriteString("| options | arena, MiB | saved | resident, MiB | s per step | more time |\n|---|---:|---:|---:|---:|---:|\n")
	var whole taught
	for i, l := range layouts {
		got, err := b.teach(ctx, "finetune", plain, l.set, "2")
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.name, err)
		}
		_ = os.Remove(got.path)
		if i == 0 {
			whole = got
		}
		fmt.Fprintf(&t, "| %s | %.1f | %.1f %% | %.0f | %.2f | %.0f %% |\n", l.name, mib(got.arena()), 100*(1-float64(got.arena())/float64(whole.arena())),
			got.peak, took[i], 100*(took[i]/took[0]-1))
	}
	many, err := b.batch128(ctx, plain)
	if err != nil {
		return "", err
	}
	budget, err := b.budget(ctx)
	return t.String() + "\n" + many + "\n" + budget, err
}

// batch128 is the first layout and the last one where activations are most of the memory.
func (b *bench) batch128(ctx context.Context, tr training) (string, error) {
	tr.batch, tr.net = 128, "resnet128"
	tr.data = []string{"input", "128", "1000", "3", "224", "224"}
	if b.quick {
		tr.batch, tr.net, tr.data = resnet.batch, resnet.net, resnet.data
	}
	var all [2]taught
	for i, l := range []map[string]string{nil, layouts[len(layouts)-1].set} {
		got, err := b.teach(ctx, "finetune", tr, l, "2")
		if err != nil {
			return "", err
		}
		_ = os.Remove(got.path)
		all[i] = got
	}
	return fmt.Sprintf("Batch %d: the arena takes %.0f MiB, and %.0f MiB with %s, a ratio of %.2f; resident %.0f and %.0f MiB, a ratio of %.2f: weights,\nthe batch and the program do not become smaller.\n",
		tr.batch, mib(all[0].arena()), mib(all[1].arena()), layouts[len(layouts)-1].name, float64(all[0].arena())/float64(all[1].arena()), all[0].peak, all[1].peak, all[0].peak/all[1].peak), nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// layoutTimes are the median seconds of a step under each layout.
func (b *bench) layoutTimes(ctx context.Context, tr training) ([]float64, error) {
	all := make([][]float64, len(layouts))
	steps := tr.steps
	if b.quick {
		steps = 1
	}
	for range b.runs {
		for i, l := range layouts {
			s, err := b.steps(ctx, tr, 2, steps, l.set)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			all[i] = append(all[i], s.wall...)
		}
	}
	out := make([]float64, len(all))
	for i, s := range all {
		out[i] = middle(s)
	}
	return out, nil
}

// taught is the output of a training process.
type taught struct {
	pass.Training
	path string  // of the result
	peak float64 // MiB resident
}

// arena is the planned bytes of a step.
func (t taught) arena() int64 {
	i := slices.IndexFunc(t.Memory, func(s pass.Size) bool { return s.Name == "activations and gradients" })
	return t.Memory[i].Bytes
}

// need is the planned bytes of all.
func (t taught) need() (n int64) {
	for _, s := range t.Memory {
		n += s.Bytes
	}
	return n
}

// teach trains in a process of its own.
func (b *bench) teach(ctx context.Context, verb string, tr training, more map[string]string, steps string) (t taught, err error) {
	in, data, err := b.materials(ctx, tr)
	if err != nil {
		return t, err
	}
	folder, err := os.MkdirTemp(b.dir, "teach-")
	if err != nil {
		return t, err
	}
	t.path = filepath.Join(b.dir, "train", filepath.Base(folder)+".onnx")
	defer os.RemoveAll(folder)
	args := []string{b.tool, verb, "-o", t.path, "--data", data, "--batch", fmt.Sprint(tr.batch), "--validate", "0", "--steps", steps,
		"--report", "json", "--report-dir", folder, "--no-verify", "--no-sync", "--digest", "none", "--workers", engineThreads, "--quiet"}
	for _, set := range []map[string]string{tr.set, more} {
		for name, value := range set {
			args = append(args, "--"+name+"="+value)
		}
	}
	if verb == "distill" {
		args = append(args, "--student", in)
	} else {
		args = append(args, in)
	}
	c, err := b.peer(ctx, command("", args...).args...)
	if err != nil {
		return t, err
	}
	t.peak = c.Peak
	t.Training, err = reported(folder)
	return t, err
}

// reported is the training in the only report in a folder.
func reported(folder string) (pass.Training, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(found) != 1 {
		return pass.Training{}, fmt.Errorf("%d reports, want 1 (%w)", len(found), err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return pass.Training{}, err
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return pass.Training{}, err
	}
	if len(r.Training) != 1 {
		return pass.Training{}, fmt.Errorf("%d trainings, want 1", len(r.Training))
	}
	return r.Training[0], nil
}

// budget trains a student with half the memory that it needs without a budget.
func (b *bench) budget(ctx context.Context) (string, error) {
	student := resnet
	student.batch = 16
	student.set = map[string]string{"optimizer": "momentum", "lr": "1e-3"}
	teacher, err := b.file(ctx, cnn)
	if err != nil {
		return "", err
	}
	student.set["teacher"], student.set["alpha"] = teacher, "0.5"
	plain, err := b.teach(ctx, "distill", student, nil, "3")
	if err != nil {
		return "", err
	}
	defer os.Remove(plain.path)
	half := plain.need() / 2
	tight, err := b.teach(ctx, "distill", student, map[string]string{"memory-budget": fmt.Sprint(half)}, "3")
	if err != nil {
		return "", err
	}
	defer os.Remove(tight.path)
	text, err := b.helper(ctx, "difference", plain.path, tight.path)
	if err != nil {
		return "", err
	}
	var difference, most float64
	if _, err := fmt.Sscan(text, &difference, &most); err != nil {
		return "", err
	}
	return fmt.Sprintf("A student of that shape, batch %d, with a teacher of the same shape: %s are planned, %.0f MiB resident. Under `--memory-budget` of half of\n"+
		"that, %.0f MiB: %s are planned, %.0f MiB resident (%+.0f MiB compared with the budget); %s.\nAfter 3 steps the maximum difference of a weight is %.1e of the largest weight.\n",
		student.batch, humanize.IBytes(uint64(plain.need())), plain.peak, mib(half), humanize.IBytes(uint64(tight.need())), tight.peak, tight.peak-mib(half), tight.Layout, difference/most), nil
}
