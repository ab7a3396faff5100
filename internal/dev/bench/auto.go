package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed auto.py
var autoScript string

// mostLost is the maximum accuracy drop.
const mostLost = 0.01

// classifiers are the shared models with labels, and the options of --auto for each. MiniLM's outputs are embeddings,
// which have no accuracy: its gate is an error.
var classifiers = []struct {
	name string
	gate []string
}{
	{"mnist_cntk", byAccuracy}, {"mnist_cnn_max3", byAccuracy}, {"mnist_self_attention", byAccuracy},
	{"mnist_sigmoid", byAccuracy},
	{"mnist_softmax_head", byAccuracy}, {"cifar_wide_kw", byAccuracy}, {"cifar_deep_kw", byAccuracy},
	{"mlperf_resnet8", byAccuracy},
	{"magika_v3_3", byAccuracy}, {"minilm_l6_v2_vocab3086",
		[]string{"--min-sqnr", "10", "--limit", "8", "--candidates", "weight-int4:block=128,weight-int8"}},
}

var byAccuracy = []string{"--max-accuracy-drop", fmt.Sprint(mostLost)}

// An evaluated is a file of one model, and its accuracy on the held-out samples.
type evaluated struct {
	bytes int64
	right float64
	name  string
}

// auto compares quantize --auto with every setting of ONNX Runtime's tools.
func (b *bench) auto(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Mixed precision by --auto, compared with single settings\n\n")
	t.WriteString("Each classifier by `quantize --auto --max-accuracy-drop 0.01` (MiniLM, whose outputs are embeddings: `--min-sqnr 10` on 8 texts, of two candidates), and by 23 settings of ONNX Runtime's\n")
	t.WriteString("tools: `quantize_dynamic`, `quantize_static` after its `quant_pre_process`, `MatMulNBits`, and onnxconverter-common's float16. Search and calibration use\n")
	t.WriteString("every other one of MNIST's 5,000 images, CIFAR-10's 200 and magika's 205 samples, or MiniLM's 400 train texts; accuracy, in %, is that in ONNX Runtime on the\n")
	t.WriteString("others, which are held out: 2,500, 100, 102, and 400. CPU is user and system time. The peer is its smallest file with an accuracy drop of at most one point.\n\n")
	t.WriteString("| model | file | accuracy | best peer setting | bytes | accuracy | --auto | accuracy | s | s of CPU | peak MiB | --auto ÷ peer |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range classifiers {
		row, err := b.classifier(ctx, c.name, c.gate)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprint(os.Stderr, row)
		t.WriteString(row)
	}
	return t.String(), nil
}

// classifier is the row of one model.
func (b *bench) classifier(ctx context.Context, name string, gate []string) (string, error) {
	folder := filepath.Join(b.dir, "auto")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	found, err := filepath.Glob(filepath.Join(b.shared, "fixtures", "models", "*", name, "model.onnx"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d models of that name: %w", len(found), err)
	}
	model, seen, kept := found[0], filepath.Join(folder, "seen.npz"), filepath.Join(folder, "kept.npz")
	ours := filepath.Join(folder, "ours.onnx")
	if _, err := b.classified(ctx, "split", name, filepath.Join(b.shared, "fixtures"), seen, kept); err != nil {
		return "", err
	}
	took, err := b.chosen(ctx, model, ours, seen, gate)
	if err != nil {
		return "", err
	}
	own, err := b.classified(ctx, "evaluate", kept, model, ours)
	if err != nil {
		return "", err
	}
	theirs, err := b.classified(ctx, "peers", model, seen, kept, folder)
	if err != nil {
		return "", err
	}
	source, auto, peer := own[0], own[1], own[0]
	peer.name = "none"
	for _, p := range theirs {
		if p.bytes > 0 && p.bytes < peer.bytes && p.right >= source.right-mostLost-1e-9 {
			peer = p
		}
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %d | %s | %d | %s | %.1f | %.1f | %.0f | %.2f |\n", name, source.bytes,
		percent(source.right), peer.name, peer.bytes, percent(peer.right),
		auto.bytes, percent(auto.right), took.Seconds, took.User+took.System, took.Peak,
		float64(auto.bytes)/float64(peer.bytes)), nil
}

// chosen lets methods be chosen for model.
func (b *bench) chosen(ctx context.Context, model, out, data string, gate []string) (cost, error) {
	args := append([]string{b.tool, "quantize", model, "-o", out, "--auto", "--data", data, "--report", "none",
		"--no-sync", "--digest", "none", "--workers", engineThreads, "--quiet"}, gate...)
	return b.peer(ctx, command("", args...).args...)
}

// classified runs a verb of auto.py and returns the files that it evaluated.
func (b *bench) classified(ctx context.Context, args ...string) ([]evaluated, error) {
	text, err := b.part(ctx, "auto.py", autoScript, args)
	if err != nil {
		return nil, err
	}
	var list []evaluated
	for line := range strings.Lines(text) {
		var j evaluated
		if _, err := fmt.Sscan(line, &j.bytes, &j.right); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		if words := strings.SplitN(strings.TrimSpace(line), " ", 3); len(words) == 3 {
			j.name = words[2]
		}
		list = append(list, j)
	}
	return list, nil
}
