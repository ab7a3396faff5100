package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sampledModels are the shared models with real data that samples prune.
var sampledModels = []string{
	"transformer/minilm_l6_v2_vocab3086", "text/magika_v3_3", "vision/mnist_cntk", "vision/mnist_cnn_max3", "vision/mnist_softmax_head",
	"vision/mnist_sigmoid", "transformer/mnist_self_attention",
}

// sampledAmounts are the options of the columns of each method, and the method that prunes so by magnitude.
var sampledAmounts = []struct{ options, magnitude string }{{"--amount 0.5", "l1"}, {"--amount 0.6", "l1"}, {"--pattern 2:4", "nm"}}

// pruneSamples compares pruning by samples with pruning by magnitude.
func (b *bench) pruneSamples(ctx context.Context) (string, error) {
	folder := filepath.Join(b.dir, "prune-samples")
	defer os.RemoveAll(folder)
	if err := b.realSamples(ctx, folder); err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Pruning by samples\n\nMatrices and filters (`--only 'op:{MatMul,Gemm,Conv}'`), pruned by magnitude (`l1`, or `nm` for 2:4), `wanda` and `sparsegpt`; output SQNR in dB\non held-out samples, in ONNX Runtime.\n\n")
	t.WriteString("| model |")
	for _, a := range sampledAmounts {
		fmt.Fprintf(&t, " `%s`: magnitude | wanda | sparsegpt |", a.options)
	}
	t.WriteString("\n|---|" + strings.Repeat("---:|", 3*len(sampledAmounts)) + "\n")
	for _, name := range sampledModels {
		if err := b.sampledRow(ctx, &t, folder, name); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return t.String(), nil
}

// sampledRow prunes one model by each method and amount.
func (b *bench) sampledRow(ctx context.Context, t *strings.Builder, folder, name string) error {
	model, samples := filepath.Join(b.shared, "fixtures", "models", name, "model.onnx"), filepath.Join(folder, filepath.Base(name))
	evaluated := []string{"evaluate", model, samples, folder}
	for i, a := range sampledAmounts {
		for _, method := range []string{a.magnitude, "wanda", "sparsegpt"} {
			out := filepath.Join(folder, fmt.Sprintf("%s%d.onnx", method, i))
			args := append([]string{"prune", model, "-o", out, "--method", method, "--only", "op:{MatMul,Gemm,Conv}", "--report", "none", "--no-verify", "--quiet"}, strings.Fields(a.options)...)
			if method != a.magnitude {
				args = append(args, "--data", samples+".npz")
			}
			if _, err := b.stdout(ctx, b.tool, args...); err != nil {
				return err
			}
			evaluated = append(evaluated, method+"="+out)
		}
	}
	all, err := b.outcomes(ctx, evaluated)
	if err != nil {
		return err
	}
	fmt.Fprintf(t, "| %s |", filepath.Base(name))
	for _, o := range all {
		fmt.Fprintf(t, " %.2f |", o.decibels())
	}
	t.WriteString("\n")
	return nil
}
