package main

import (
	"bytes"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// The alternative of a summary has the compression ratio that its method then has for the same target.
func TestTheAlternativeIsForTheTarget(t *testing.T) {
	model := filepath.Join(conform.Shared(t), "fixtures", "models", "vision", "mnist_cntk", "model.onnx")
	ratio := func(pattern string, args ...string) float64 {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"mcompress", "quantize", "--dry-run", model}, args...), &stdout,
			&stderr); code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		m := regexp.MustCompile(pattern).FindStringSubmatch(stdout.String())
		if m == nil {
			t.Fatalf("no %s in %s", pattern, stdout.String())
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return math.Round(10*x) / 10
	}
	const promised, is = `--method weight-int8 gives about (\d\.\d)`, `file size .*  (\d\.\d\d)×`
	for _, target := range []string{"openvino", "ort"} {
		got, want := ratio(promised, "--target", target),
			ratio(is, "--target", target, "--method", "weight-int8", "--digest", "none")
		if got != want {
			t.Errorf("--target %s: got %g×, want %g×", target, got, want)
		}
	}
}

// Caches of removed layers are no error of verify, but noted.
func TestVerifyAfterTheRemovalOfLayers(t *testing.T) {
	model := filepath.Join(conform.Shared(t), "fixtures", "models", "transformer", "qwen35_tiny", "model.onnx")
	pruned := filepath.Join(t.TempDir(), "pruned.onnx")
	for _, args := range [][]string{
		{"prune", "--method", "layers", "--report", "none", "-o", pruned, model},
		{"verify", model, pruned},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"mcompress"}, args...), &stdout, &stderr); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", args[0], code, stderr.String())
		}
		if note := "outputs present.*.key are not compared: the second model has 1 of 2"; args[0] == "verify" &&
			!strings.Contains(stdout.String(), note) {
			t.Errorf("no note in %s", stdout.String())
		}
	}
}
