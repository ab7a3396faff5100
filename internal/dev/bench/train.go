package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed train.py
var trainScript string

// A training is what both sides train.
type training struct {
	name   string
	net    string // for pytorch.py, and the name of the files
	model  func(b *bench, ctx context.Context) (string, error)
	data   []string // what train.py makes of samples
	tokens bool     // samples are token ids
	batch  int
	steps  int // in a row
	set    map[string]string
}

var (
	smallMLP = training{
		name: "MLP 784-512-512-10, batch 128, Adam", net: "mlp", batch: 128, steps: 40,
		data: []string{"x", "512", "10", "1", "28", "28"},
		model: func(b *bench, ctx context.Context) (string, error) {
			return b.net(ctx, []string{"784", "512", "512", "10"})
		},
		set: map[string]string{"optimizer": "adam", "lr": "1e-3"},
	}
	smallCNN = training{
		name: "CNN of 3 convolutions, 32×32×3, batch 64, Adam", net: "cnn", batch: 64, steps: 15,
		data:  []string{"x", "256", "10", "3", "32", "32"},
		model: func(b *bench, ctx context.Context) (string, error) { return b.made(ctx, "train/cnn.onnx", "cnn") },
		set:   map[string]string{"optimizer": "adam", "lr": "1e-3"},
	}
	resnet = training{
		name: "ResNet18 shape, 224×224×3, batch 8, SGD with momentum", net: "resnet", batch: 8, steps: 3,
		data:  []string{"input", "32", "1000", "3", "224", "224"},
		model: func(b *bench, ctx context.Context) (string, error) { return b.file(ctx, cnn) },
		set:   map[string]string{"optimizer": "momentum", "lr": "1e-3", "batch-statistics": "true"},
	}
	minilm = training{
		name: "MiniLM, 128 tokens, batch 8, AdamW", net: "minilm", batch: 8, steps: 3, data: []string{"32", "128"},
		tokens: true,
		model:  (*bench).prunedMiniLM,
		set:    map[string]string{"optimizer": "adamw", "lr": "1e-4"},
	}
	mobilenet = training{
		name: "MobileNetV2 shape, 96×96×3, batch 16", net: "mobilenet", batch: 16, steps: 3,
		data: []string{"x", "32", "10", "3", "96", "96"},
		model: func(b *bench, ctx context.Context) (string, error) {
			return b.made(ctx, "train/mobilenet.onnx", "mobilenet")
		},
		set: map[string]string{"optimizer": "momentum", "lr": "1e-3", "batch-statistics": "true"},
	}
)

// prunedMiniLM is the shared MiniLM with half of its weights, which learns from the whole one.
func (b *bench) prunedMiniLM(ctx context.Context) (string, error) {
	path := filepath.Join(b.dir, "train", "minilm.onnx")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	_, err := b.stdout(ctx, b.tool, "prune", "--method", "l1-global", "--amount", "0.5",
		"--no-verify", "--report", "none", "-o", path, b.wholeMiniLM())
	return path, err
}

// wholeMiniLM is the path of the shared MiniLM.
func (b *bench) wholeMiniLM() string {
	return filepath.Join(b.shared, "fixtures/models/transformer/minilm_l6_v2_vocab3086/model.onnx")
}

// train compares the time of a step of training with PyTorch's.
func (b *bench) train(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Time of a training step\n\n")
	fmt.Fprintf(&t, "Forward, backward and update, by `finetune` and by PyTorch (eager, fused optimizer), interleaved, rounds: %d. BatchNormalization\n", b.runs)
	t.WriteString("uses batch statistics. MiniLM learns from a teacher of the same shape, whose outputs are computed in each step. Minimum and median time of a step, in ms; that of `finetune` includes reading samples.\n\n")
	t.WriteString("| model | threads | finetune, minimum | PyTorch, minimum | finetune ÷ PyTorch | finetune, median | PyTorch, median | finetune ÷ PyTorch |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, tr := range []training{smallMLP, smallCNN, resnet, minilm} {
		for _, threads := range []int{2, 1} {
			row, err := b.stepRow(ctx, tr, threads)
			if err != nil {
				return "", fmt.Errorf("%s: %w", tr.name, err)
			}
			fmt.Fprint(os.Stderr, row)
			t.WriteString(row)
		}
	}
	return t.String(), nil
}

// stepsOf is the number of steps in a row.
func (b *bench) stepsOf(tr training) int {
	if b.quick {
		return 2
	}
	return tr.steps
}

// stepRow lets both sides train in turn, so that a busy minute hits both.
func (b *bench) stepRow(ctx context.Context, tr training, threads int) (string, error) {
	how := []string{"float32"}
	if tr.tokens {
		how = append(how, "teacher")
	}
	peer, err := b.pytorch(ctx, tr, threads, how...)
	if err != nil {
		return "", err
	}
	defer peer.close()
	var ours, theirs []float64
	for range b.runs {
		o, err := b.steps(ctx, tr, threads, b.stepsOf(tr), nil)
		if err != nil {
			return "", err
		}
		p, err := peer.steps(b.stepsOf(tr))
		if err != nil {
			return "", err
		}
		ours, theirs = append(ours, o.wall...), append(theirs, p.wall...)
	}
	o, p := slices.Min(ours), slices.Min(theirs)
	om, pm := middle(ours), middle(theirs)
	return fmt.Sprintf("| %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", tr.name, threads, 1e3*o, 1e3*p, o/p,
		1e3*om, 1e3*pm, om/pm), nil
}

func middle(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}

// times are the seconds of steps, and the CPU seconds.
type times struct{ wall, cpu []float64 }

// cpuTime is the CPU seconds of this process.
func cpuTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// steps are the times of as many steps of a run of finetune, but its first.
func (b *bench) steps(ctx context.Context, tr training, workers, steps int, more map[string]string) (times, error) {
	t, err := b.trial(ctx, tr, workers, steps, more)
	if err != nil {
		return times{}, err
	}
	o, err := t.run(ctx)
	return times{o.Wall, o.CPU}, err
}

// materials are the model and the samples.
func (b *bench) materials(ctx context.Context, tr training) (model, data string, err error) {
	if model, err = tr.model(b, ctx); err != nil {
		return "", "", err
	}
	verb := "samples"
	if tr.tokens {
		verb = "tokens"
	}
	data, err = b.made(ctx, "train/"+tr.net+".npz", verb, tr.data...)
	return model, data, err
}

// made is the file at path in the bench's folder, which a verb of train.py makes if it is not there.
func (b *bench) made(ctx context.Context, path, verb string, args ...string) (string, error) {
	path = filepath.Join(b.dir, path)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	_, err := b.helper(ctx, append([]string{verb, path}, args...)...)
	return path, err
}

// net is the file of a net of layers of so many units.
func (b *bench) net(ctx context.Context, units []string) (string, error) {
	return b.made(ctx, "train/mlp-"+strings.Join(units, "-")+".onnx", "mlp", units...)
}

// helper runs a verb of train.py and returns what it prints.
func (b *bench) helper(ctx context.Context, args ...string) (string, error) {
	return b.part(ctx, "train.py", trainScript, args)
}
