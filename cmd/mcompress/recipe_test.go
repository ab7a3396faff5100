package main

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/conform"
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
