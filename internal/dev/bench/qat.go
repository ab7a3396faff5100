package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// qatMethods are the quantization methods of the section qat. data means that the method needs calibration data.
var qatMethods = []struct {
	name string
	data bool
}{
	{"weight-int2 per-channel", false},
	{"weight-int2", false},
	{"weight-int4", false},
	{"palette entries=4 block=0", false},
	{"palette entries=4", false},
	{"palette", false},
	{"static-int8", true},
}

// qat measures quantization-aware training on real models.
func (b *bench) qat(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Quantization-aware training\n\n")
	fmt.Fprintf(&t, "Accuracy in %% of the float model, of the quantized model, and after one epoch of `finetune` on MNIST's 60,000 training images: in float,\nquantized afterwards, and with `--qat`. Accuracy is on %d test images.\n\n", tested)
	t.WriteString("| model | method | float | quantized | fine-tuned, quantized | QAT |\n|---|---|---:|---:|---:|---:|\n")
	for _, name := range []string{"mnist_sigmoid", "mnist_softmax_head", "mnist_cnn_max3"} {
		for _, r := range qatMethods {
			row, err := b.qatRow(ctx, filepath.Join(b.shared, "fixtures", "models", "vision", name, "model.onnx"),
				r.name, r.data)
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", name, r.name, err)
			}
			fmt.Fprintf(&t, "| %s | %s |%s\n", name, r.name, row)
		}
	}
	return t.String(), nil
}

// qatRow returns the accuracies of one model and method.
func (b *bench) qatRow(ctx context.Context, model, method string, data bool) (string, error) {
	c := b.mnist(byte255)
	quantized, tuned, qat := b.trainFile("qat.quantized.onnx"), b.trainFile("qat.float.onnx"), b.trainFile("qat.onnx")
	row := ""
	evaluate := func(path string) error {
		accuracy, err := b.accuracy(ctx, path, c.test)
		row += " " + percent(accuracy) + " |"
		return err
	}
	quantize := func(path string) error {
		words := strings.Fields(method)
		args := []string{"quantize", path, "-o", quantized, "--method", words[0]}
		for _, w := range words[1:] {
			args = append(args, "--"+w)
		}
		if data {
			args = append(args, c.train...)
		}
		if _, err := b.do(ctx, args...); err != nil {
			return err
		}
		return evaluate(quantized)
	}
	train := func(out string, more ...string) error {
		_, err := b.learn(ctx, c.train, slices.Concat([]string{"finetune", model, "-o", out, "--epochs", "1",
			"--batch", "64", "--lr", "8e-3", "--validate", "0.05"}, more)...)
		return err
	}
	for _, step := range []func() error{
		func() error { return evaluate(model) },
		func() error { return quantize(model) },
		func() error { return train(tuned) },
		func() error { return quantize(tuned) },
		func() error { return train(qat, "--qat", method) },
		func() error { return evaluate(qat) },
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return row, nil
}
