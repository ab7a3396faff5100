// Package registrytest has helpers for the tests of several kinds of registries.
package registrytest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/registry"
)

// Quick are the options of tests: loopback, without waits.
var Quick = registry.Options{PlainHTTP: true, Backoff: time.Millisecond}

// Written writes files into a new folder and returns it.
func Written(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Parse parses a reference.
func Parse(t testing.TB, text string) registry.Reference {
	t.Helper()
	ref, err := registry.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Read returns the content of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Fixture returns the artifact of a copy of a fixture with a report as text.
func Fixture(t testing.TB, name string) *registry.Artifact {
	t.Helper()
	model := Read(t, fixture(t, name+".onnx"))
	dir := Written(t, map[string]string{name + ".onnx": model, name + ".report.md": "report"})
	a, err := registry.Collect(t.Context(), filepath.Join(dir, name+".onnx"), registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fixture is the path of a file in the folder of fixtures, which is above that of the tests.
func fixture(t testing.TB, name string) string {
	t.Helper()
	for _, up := range []string{"..", "../.."} {
		path := filepath.Join(up, "fixtures", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("no fixture %s", name)
	return ""
}

// Sum is the SHA-256 of content.
func Sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// Complete returns the artifact of a model with external data and all files that belong to it.
func Complete(t testing.TB) *registry.Artifact {
	t.Helper()
	files := map[string]string{
		"external.report.md": "# Report\n", "external.report.html": "<p>",
		"external.cdx.json": `{"bomFormat": "CycloneDX"}`, "external.sig": `{"b": 1}`, "external.intoto.json": `{"c": 1}`,
		"external.card.md": "---\n---\n", "external.environment.json": "{}",
		"config.json": `{"a": 1}`, "tokenizer.json": "{}",
	}
	var listed []string
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		files[name] = Read(t, fixture(t, name))
		content := files[name]
		listed = append(
			listed,
			fmt.Sprintf(`{"name": %q, "bytes": %d, "sha256": %q}`, name, len(content), Sum([]byte(content))),
		)
	}
	files["external.report.json"] = `{"recipe": {"text": "steps:\n- method: l1\n- method: weight-int8\n  x: 1\n"},
		"result": {"files": [` + strings.Join(listed, ", ") + `]},
		"totals": {"dtypes": [
			{"dtype": "float", "bytes": {"before": 9, "after": 2}}, {"dtype": "int8", "bytes": {"before": 0, "after": 3}}
		]}}`
	a, err := registry.Collect(t.Context(), filepath.Join(Written(t, files), "external.onnx"), registry.CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Names are the names of files with their roles.
func Names(files []registry.File) string {
	var list []string
	for _, f := range files {
		list = append(list, string(f.Role)+":"+f.Name)
	}
	return strings.Join(list, " ")
}

// IsA reports whether err has an error of type E.
func IsA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// Same fails unless a folder has the files of an artifact and nothing else.
func Same(t *testing.T, dir string, files []registry.File) {
	t.Helper()
	for _, f := range files {
		if Sum([]byte(Read(t, filepath.Join(dir, f.Name)))) != f.SHA256 {
			t.Errorf("%s differs", f.Name)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(files) {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// Visible are the files of a folder that are not hidden.
func Visible(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			list = append(list, e.Name())
		}
	}
	return list
}
