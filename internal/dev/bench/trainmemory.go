package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// mib is n bytes in MiB.
func mib(n int64) float64 { return float64(n) / (1 << 20) }

// many is ResNet18 at batch size 128, where activations are most of the memory.
func (b *bench) many() training {
	tr := resnet
	if !b.quick {
		tr.batch, tr.net, tr.data = 128, "resnet128", []string{"input", "128", "1000", "3", "224", "224"}
	}
	return tr
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
func (b *bench) teach(ctx context.Context, verb string, tr training, more map[string]string, steps string) (t taught,
	err error) {
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
	args := []string{b.tool, verb, "-o", t.path, "--data", data, "--batch", fmt.Sprint(tr.batch), "--validate", "0",
		"--steps", steps,
		"--report", "json", "--report-dir", folder, "--no-verify", "--no-sync", "--digest", "none",
		"--workers", engineThreads, "--quiet"}
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
	found, err := filepath.Glob(filepath.Join(folder, "*.report.json"))
	if err != nil || len(found) != 1 {
		return pass.Training{}, fmt.Errorf("%d reports, want 1", len(found))
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
	return fmt.Sprintf("### Memory budget\n\nA student of the ResNet18 shape, batch %d, with a teacher of the same shape: %s are planned, %.0f MiB resident. Under `--memory-budget` of half of\n"+
		"that, %.0f MiB: %s are planned, %.0f MiB resident (%+.0f MiB compared with the budget); %s.\nAfter 3 steps the maximum difference of a weight is %.1e of the largest weight.\n",
		student.batch, humanize.IBytes(uint64(plain.need())), plain.peak, mib(half),
		humanize.IBytes(uint64(tight.need())), tight.peak, tight.peak-mib(half), tight.Layout, difference/most), nil
}
