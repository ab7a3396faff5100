package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/latency"
)

// sparseStorage is the first step of the recipes of the section sparse-recipe after training.
const sparseStorage = "  - method: weight-int8\n"

// A prunedNet is a trained network that a recipe makes sparse.
type prunedNet struct {
	name, recipe string
	dims         []string
	// cells of accuracy and cosine similarity
	quality func(b *bench, ctx context.Context, dense, model string) (string, error)
}

var prunedNets = []prunedNet{
	{"vision/mnist_cnn_max3", "fixtures/recipes/sparse-int8-mnist.yaml", nil, (*bench).digitsRight},
	{"transformer/minilm_l6_v2_vocab3086", "fixtures/recipes/sparse-int8-minilm.yaml", []string{"seq=96"},
		(*bench).textsRight},
}

// digitsRight is the accuracy on the test images of MNIST.
func (b *bench) digitsRight(ctx context.Context, _, model string) (string, error) {
	x, err := b.accuracy(ctx, model, b.mnist(byte255).test)
	return percent(x) + " | –", err
}

// textsRight is the accuracy of the nearest centroid, and the mean cosine similarity of embeddings to those of the
// dense model.
func (b *bench) textsRight(ctx context.Context, dense, model string) (string, error) {
	splits, err := b.sms(ctx)
	if err != nil {
		return "", err
	}
	text, err := b.helper(ctx, "likeness", splits[0].test[0], dense, model)
	if err != nil {
		return "", err
	}
	var l likeness
	_, err = fmt.Sscan(text, &l.accuracy, &l.cosine)
	return fmt.Sprintf("%s | %.3f", percent(l.accuracy), l.cosine), err
}

// sparseRecipe measures recipes that prune, train and quantize, from the dense model in ONNX Runtime to the sparse one
// in the engine.
func (b *bench) sparseRecipe(ctx context.Context) (string, error) {
	if err := b.linkMNIST(); err != nil {
		return "", err
	}
	if _, err := b.sms(ctx); err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "## Sparse models, end to end\n\n")
	fmt.Fprintf(&t, "Recipes that prune, train, quantize and store as sparse: `fixtures/recipes/sparse-int8-*.yaml`. Accuracy in %% on %d test images of MNIST, for MiniLM of 400 test texts by the nearest centroid, with the mean\n"+
		"cosine similarity of their embeddings to the dense model's; neither set chose anything. Training has the first 55,000 training images and the first 320 training texts. The ResNet18 shape has random\n"+
		"weights, hence no accuracy: 90 %% of each weight are pruned (`l1`). Time of batch 1 in ms (96 tokens), %s threads, interleaved, processes of each: %d, at least `bench %s`.\n\n", tested, engineThreads, b.runs, strings.Join(b.pace(), " "))
	if b.quick {
		t.WriteString("This is a run with `-quick`, which leaves out MiniLM: its times are no evidence.\n\n")
	}
	t.WriteString("| model | form | runtime | accuracy | cosine | bytes | minimum | median |\n|---|---|---|---:|---:|---:|---:|---:|\n")
	for _, n := range prunedNets[:b.some(len(prunedNets))] {
		if err := b.recipeRows(ctx, n, &t); err != nil {
			return "", fmt.Errorf("%s: %w", n.name, err)
		}
	}
	dense, err := b.file(ctx, cnn)
	if err != nil {
		return "", err
	}
	pruned := b.trainFile("resnet18.pruned.onnx")
	defer os.Remove(pruned)
	if _, err := b.do(ctx, "prune", dense, "-o", pruned, "--method", "l1", "--amount", "0.9"); err != nil {
		return "", err
	}
	none := func(*bench, context.Context, string, string) (string, error) { return "– | –", nil }
	err = b.formRows(ctx, prunedNet{name: "ResNet18 shape", quality: none}, dense, pruned, &t)
	return t.String(), err
}

// recipeRows are the rows of a network that its recipe trains.
func (b *bench) recipeRows(ctx context.Context, n prunedNet, t *strings.Builder) error {
	text, err := os.ReadFile(n.recipe)
	if err != nil {
		return err
	}
	training, _, found := strings.Cut(string(text), sparseStorage)
	if !found {
		return fmt.Errorf("%s has no step weight-int8", n.recipe)
	}
	dense, pruned := filepath.Join(b.shared, "fixtures", "models", n.name, "model.onnx"),
		b.trainFile("recipe."+filepath.Base(n.name)+".onnx")
	if dense, err = filepath.Abs(dense); err != nil {
		return err
	}
	if err := b.applied(ctx, training, dense, pruned); err != nil {
		return err
	}
	return b.formRows(ctx, n, dense, pruned, t)
}

// formRows stores a pruned model in sparse forms, and compares them with the dense one.
func (b *bench) formRows(ctx context.Context, n prunedNet, dense, pruned string, t *strings.Builder) error {
	stem := strings.TrimSuffix(pruned, ".onnx")
	stored, quantized, small := stem+".sparse.onnx", stem+".int8.onnx", stem+".sparse.int8.onnx"
	for _, step := range [][]string{{"sparse", pruned, "-o", stored},
		{"quantize", pruned, "-o", quantized, "--method", "weight-int8"}, {"sparse", quantized, "-o", small}} {
		if _, err := b.do(ctx, step...); err != nil {
			return err
		}
	}
	l := load{batch: 1, dims: n.dims}
	rows := []struct{ form, runtime, path, backend string }{
		{"dense float32", "ONNX Runtime", dense, latency.ORT},
		{"dense float32", "engine", dense, latency.Embedded},
		{"sparse float32", "engine", stored, latency.Embedded},
		{"sparse int8", "engine", small, latency.Embedded},
	}
	var candidates []candidate
	for _, r := range rows {
		candidates = append(candidates, b.candidate(ctx, r.form+r.runtime, r.path, r.backend, l))
	}
	got, err := b.interleaved(candidates)
	if err != nil {
		return err
	}
	for _, r := range rows {
		quality, err := n.quality(b, ctx, dense, r.path)
		if err != nil {
			return err
		}
		m := ofMedianTime(got[r.form+r.runtime])
		fmt.Fprintf(t, "| %s | %s | %s | %s | %d | %.3f | %.3f |\n", filepath.Base(n.name), r.form, r.runtime,
			quality, bytesOf(r.path), 1e3*m.Min, 1e3*m.Median)
	}
	return nil
}
