package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A recipe gives each part of a model a method of its own, in one run: what comes of it is valid, the same with any number of workers,
// and computes the same in ONNX Runtime as its graphs say.
func TestMethodsStandSideBySide(t *testing.T) {
	w := conform.Start(t)
	source := filepath.Join("..", "..", "fixtures", "transformer.onnx")
	recipe := filepath.Join("..", "..", "fixtures", "recipes", "mixed.yaml")
	results := map[string]string{}
	for _, workers := range []string{"1", "3"} {
		results[workers] = filepath.Join(prepared(t, workers), "mixed.onnx")
		must(t, []string{"apply", recipe, source, "--workers", workers, "--report", "json", "--quiet", "--output", results[workers]})
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
	took := map[string]bool{}
	for _, weight := range readReport(t, results["1"]).Weights {
		for _, method := range weight.Methods {
			took[method] = true
		}
	}
	for _, method := range []string{"smooth", "static-int8", "weight-int4", "weight-int2", "float8", "weight-int8", "dynamic-int8", "float16"} {
		if !took[method] {
			t.Errorf("%s took no weight: %v", method, took)
		}
	}
}

// Codes in blocks whose activations were codes, and rows of 2-bit codes that do not fill bytes, are read by ONNX Runtime as they are
// meant: as DequantizeLinear it would take them for something else.
func TestCodesInBlocksBehindCodes(t *testing.T) {
	w, dir := conform.Start(t), prepared(t, "behind")
	fixture := func(name string) string { return filepath.Join("..", "..", "fixtures", name) }
	recipe, result := filepath.Join(dir, "two.yaml"), filepath.Join(dir, "two.onnx")
	text := "steps:\n  - {method: static-int8, data: " + fixture("digits_train.npz") + ", calibrate: 32, only: ['op:Conv']}\n" +
		"  - {method: weight-int2, block: 16, only: [9.weight, 11.weight]}\n"
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, []string{"apply", recipe, fixture("cnn.onnx"), "--report", "none", "--no-verify", "--quiet", "--output", result})
	share, err := w.Accuracy(result, fixture("digits_test.npz"), "labels", conform.Options{})
	if err != nil || share < 0.75 {
		t.Errorf("%.3f are right in ONNX Runtime: %v", share, err)
	}
}
