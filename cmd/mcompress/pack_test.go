package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Every model is restored bit for bit, and is not larger when packed but for the index of small ones: the fixtures, and
// of the real models a sixth or, by make test-exhaustive, all.
func TestPackedModelsAreRestored(t *testing.T) {
	for _, path := range slices.Concat(conform.Fixtures(t), conform.Part(3, 6, conform.RealModels(t))) {
		packed, restored := filepath.Join(t.TempDir(), "m.mcz"), filepath.Join(t.TempDir(), "m.onnx")
		var sizes struct {
			Bytes  int64 `json:"bytes"`
			Packed int64 `json:"packed_bytes"`
		}
		if err := json.Unmarshal(mustRun(t, "--json", "pack", "--no-sync", "-o", packed, path), &sizes); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "unpack", "--no-sync", "-o", restored, packed)
		if got, want := fileContent(t, restored), fileContent(t, path); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", path, len(got), len(want))
		}
		if sizes.Packed > sizes.Bytes+600 {
			t.Errorf("%s: %d bytes packed, %d before", path, sizes.Packed, sizes.Bytes)
		}
	}
}

func fileContent(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A fine-tuned model takes its differences from the base, and is restored with it alone.
func TestModelIsPackedWithBase(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	base := "../../fixtures/mlp.onnx"
	mustRun(t, "prune", "--amount", "0.1", "--report", "none", "--no-verify", "-o", path("pruned.onnx"), base)
	mustRun(t, "pack", "--base", base, "-o", path("m.mcz"), path("pruned.onnx"))
	if packed, whole := len(fileContent(t, path("m.mcz"))), len(fileContent(t, base)); packed > whole/5 {
		t.Errorf("%d bytes of %d", packed, whole)
	}
	mustRun(t, "unpack", "--base", base, "-o", path("m.onnx"), path("m.mcz"))
	if !bytes.Equal(fileContent(t, path("m.onnx")), fileContent(t, path("pruned.onnx"))) {
		t.Error("the model differs")
	}
	for _, args := range [][]string{{"unpack", "-o", path("n.onnx"), path("m.mcz")},
		{"unpack", "--base", path("pruned.onnx"), "-o", path("n.onnx"), path("m.mcz")}, {"inspect", path("m.mcz")}} {
		if code, _, stderr := call(args...); code != exitInput ||
			!strings.Contains(stderr, "unpack it with that model as --base") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
}

// The lines of Python in the documentation of the format list the tensors of a packed model.
func TestPackedModelIsListedByPython(t *testing.T) {
	python := conform.Python(t)
	packed := filepath.Join(t.TempDir(), "m.mcz")
	mustRun(t, "pack", "-o", packed, "../../fixtures/mlp.onnx")
	page := fileContent(t, "../../docs/formats/mcz.md")
	lines := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if lines == nil {
		t.Fatal("no Python in docs/formats/mcz.md")
	}
	out, err := exec.Command(python, "-c", string(lines[1]), packed).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), " float ["); n < 3 ||
		!strings.Contains(string(out), "float planes: stored stored stored ") {
		t.Errorf("%d tensors\n%s", n, out)
	}
}
