package conform

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NodeTests returns a folder with the backend node tests of the onnx package, one folder a test: model.onnx,
// tolerance.json, and test_data_set_N with input_N.pb and output_N.pb. It is in the user's cache, by the digest of what
// computes them, as onnx computes all of them when they are asked for: half a minute.
func NodeTests(t testing.TB) string {
	t.Helper()
	w := Start(t)
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	key := sha256.New()
	for _, name := range []string{"node_tests.py", "requirements.txt"} {
		text, err := os.ReadFile(filepath.Join(root, "internal", "dev", "conform", name))
		if err != nil {
			t.Fatal(err)
		}
		key.Write(text)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		caches = t.TempDir()
	}
	caches = filepath.Join(caches, "mcompress", "tests")
	folder := filepath.Join(caches, fmt.Sprintf("node-tests-%x", key.Sum(nil)[:8]))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(caches, 0o755); err != nil {
		t.Fatal(err)
	}
	partial, err := os.MkdirTemp(caches, "partial-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(partial)
	var n int
	if err := w.call("node_tests", map[string]any{"folder": partial}, &n); err != nil || n < 1000 {
		t.Fatalf("%d tests: %v", n, err)
	}
	if err := os.Rename(partial, folder); err != nil { // complete, unless another process was faster
		if _, gone := os.Stat(folder); gone != nil {
			t.Fatal(err)
		}
	}
	return folder
}
