package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A recipe applies different methods to different parts of a model in one run: the result is valid, bit-identical for
// any number of workers, and accurate in ONNX Runtime.
func TestMixedMethodsInOneRecipe(t *testing.T) {
	w := conform.Start(t)
	source := filepath.Join("..", "..", "fixtures", "transformer.onnx")
	recipe := filepath.Join("..", "..", "fixtures", "recipes", "mixed.yaml")
	results := map[string]string{}
	for _, workers := range []string{"1", "3"} {
		results[workers] = filepath.Join(prepared(t, workers), "mixed.onnx")
		must(t, []string{"apply", recipe, source, "--workers", workers, "--report", "json",
			"--quiet", "--output", results[workers]})
	}
	sameBytes(t, results["1"], results["3"])
	if err := w.Check(results["1"], true); err != nil {
		t.Error(err)
	}
	outs, err := w.Compare(source, results["1"], conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if db := conform.LowestSQNR(outs); db < 12 {
		t.Errorf("%.1f dB in ONNX Runtime", db)
	}
	changed := map[string]bool{}
	for _, weight := range readReport(t, results["1"]).Weights {
		for _, method := range weight.Methods {
			changed[method] = true
		}
	}
	for _, method := range []string{"smooth", "static-int8", "weight-int4", "weight-int2", "float8", "weight-int8",
		"dynamic-int8", "float16"} {
		if !changed[method] {
			t.Errorf("%s changed no weight: %v", method, changed)
		}
	}
}

// ONNX Runtime computes blockwise quantized weights after quantized activations correctly, including rows of 2-bit
// weights that do not fill bytes: it would misread those in DequantizeLinear.
func TestBlockwiseWeightsAfterQuantizedActivations(t *testing.T) {
	w, dir := conform.Start(t), prepared(t, "blockwise")
	fixture := func(name string) string { return filepath.Join("..", "..", "fixtures", name) }
	recipe, result := filepath.Join(dir, "two.yaml"), filepath.Join(dir, "two.onnx")
	text := "steps:\n  - {method: static-int8, data: " + fixture("digits_train.npz") +
		", calibrate: 32, only: ['op:Conv']}\n" +
		"  - {method: weight-int2, block: 16, only: [9.weight, 11.weight]}\n"
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, []string{"apply", recipe, fixture("cnn.onnx"), "--report", "none",
		"--no-verify", "--quiet", "--output", result})
	accuracy, err := w.Accuracy(result, fixture("digits_test.npz"), "labels", conform.Options{})
	if err != nil || accuracy < 0.75 {
		t.Errorf("accuracy %.3f in ONNX Runtime: %v", accuracy, err)
	}
}
