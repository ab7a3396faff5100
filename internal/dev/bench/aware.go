package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// roundings are methods that training is aware of, and what they want of data.
var roundings = []struct {
	name string
	data bool
}{
	{"weight-int2 per-channel", false},
	{"weight-int2", false},
	{"weight-int4", false},
	{"static-int8", true},
}

// aware trains real models for the method behind.
func (b *bench) aware(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Training that is aware of rounding\n\n")
	fmt.Fprintf(&t, "Accuracy in %% of the float model, of it quantized, and behind one epoch of `finetune` on MNIST's 60,000 images: of float weights that are\nquantized then, and `--aware`. Judged by %d other images.\n\n", tested)
	t.WriteString("| model | method | float | quantized | trained, quantized | trained aware |\n|---|---|---:|---:|---:|---:|\n")
	for _, name := range []string{"mnist_sigmoid", "mnist_softmax_head", "mnist_cnn_max3"} {
		for _, r := range roundings {
			row, err := b.awareRow(ctx, filepath.Join(b.shared, "fixtures", "models", "vision", name, "model.onnx"), r.name, r.data)
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", name, r.name, err)
			}
			fmt.Fprintf(&t, "| %s | %s |%s\n", name, r.name, row)
		}
	}
	return t.String(), nil
}

// awareRow is one model's way through one method.
func (b *bench) awareRow(ctx context.Context, model, method string, data bool) (string, error) {
	c := b.mnist(byte255)
	small, again, aware := b.trainFile("aware.quantized.onnx"), b.trainFile("aware.float.onnx"), b.trainFile("aware.onnx")
	row := ""
	judge := func(path string) error {
		share, err := b.accuracy(ctx, path, c.judge)
		row += " " + percent(share) + " |"
		return err
	}
	quantize := func(path string) error {
		words := strings.Fields(method)
		args := []string{"quantize", path, "-o", small, "--method", words[0]}
		for _, w := range words[1:] {
			args = append(args, "--"+w)
		}
		if data {
			args = append(args, c.learn...)
		}
		if _, err := b.do(ctx, args...); err != nil {
			return err
		}
		return judge(small)
	}
	train := func(out string, more ...string) error {
		_, err := b.learn(ctx, c.learn, slices.Concat([]string{"finetune", model, "-o", out, "--epochs", "1", "--batch", "64", "--lr", "8e-3", "--validate", "0.05"}, more)...)
		return err
	}
	for _, step := range []func() error{
		func() error { return judge(model) },
		func() error { return quantize(model) },
		func() error { return train(again) },
		func() error { return quantize(again) },
		func() error { return train(aware, "--aware", method) },
		func() error { return judge(aware) },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return row, nil
}
