package engine_test

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// TestNodeTests runs the backend node tests of the onnx package. Those in testdata/exceptions.txt must still fail, so
// that the list stays current.
func TestNodeTests(t *testing.T) {
	runAll(t, conform.NodeTests(t))
}

// TestBackendArchives runs the tests of the shared material, including models exported by PyTorch. A test that ONNX
// Runtime passes must not be an exception.
func TestBackendArchives(t *testing.T) {
	shared := filepath.Join(conform.Shared(t), "fixtures", "conformance")
	for _, name := range []string{"onnx_node_tests", "onnx_backend_other"} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			unzip(t, filepath.Join(shared, name+".zip"), folder)
			groups, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				runAll(t, filepath.Join(folder, g.Name()))
			}
			checkExceptions(t, filepath.Join(shared, name+".index.json"))
		})
	}
}

func runAll(t *testing.T, folder string) {
	tests, err := os.ReadDir(folder)
	if err != nil || len(tests) == 0 {
		t.Fatalf("%d tests in %s: %v", len(tests), folder, err)
	}
	excused := exceptions(t)
	for _, e := range tests {
		t.Run(e.Name(), func(t *testing.T) {
			err := runTest(filepath.Join(folder, e.Name()))
			switch reason := excused[e.Name()]; {
			case err != nil && reason == "":
				t.Error(err)
			case err == nil && reason != "":
				t.Errorf("passes, but is an exception: %s", reason)
			}
		})
	}
}

// exceptions are the tests that cannot pass, with the reasons.
func exceptions(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "exceptions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, reason, _ := strings.Cut(lines.Text(), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if reason = strings.TrimSpace(reason); reason == "" {
			t.Errorf("exception %s has no reason", name)
		}
		out[name] = reason
	}
	return out
}

func checkExceptions(t *testing.T, index string) {
	var tests []struct{ Test, ONNXRuntime string }
	b, err := os.ReadFile(index)
	if err == nil {
		err = json.Unmarshal(b, &tests)
	}
	if err != nil || len(tests) == 0 {
		t.Fatalf("%s: %d tests: %v", index, len(tests), err)
	}
	excused := exceptions(t)
	for _, c := range tests {
		if name := filepath.Base(c.Test); c.ONNXRuntime == "pass" && excused[name] != "" {
			t.Errorf("%s is an exception, but ONNX Runtime passes it", name)
		}
	}
}

// runTest runs one model on each of its data sets.
func runTest(folder string) error {
	f, err := onnx.Open(filepath.Join(folder, "model.onnx"))
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2})
	if err != nil {
		return err
	}
	defer e.Close()
	sets, err := filepath.Glob(filepath.Join(folder, "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return fmt.Errorf("%d data sets: %w", len(sets), err)
	}
	for _, set := range sets {
		if err := runSet(e, f.Model.Graph, set, toleranceOf(folder)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(set), err)
		}
	}
	return nil
}

func runSet(e *engine.Interpreter, g *ir.Graph, set string, tol tolerance) error {
	inputs := slices.DeleteFunc(slices.Clone(g.Inputs), func(v *ir.Value) bool { return v.Const != nil })
	in, err := values(set, "input", inputs)
	if err != nil {
		return err
	}
	want, err := values(set, "output", g.Outputs)
	if err != nil {
		return err
	}
	got, err := e.Run(context.Background(), in, nil)
	if err != nil {
		return err
	}
	for name, w := range want {
		if err := tol.differ(w, got[name]); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return nil
}

func values(set, stem string, of []*ir.Value) (map[string]*ir.Array, error) {
	out := map[string]*ir.Array{}
	for i, v := range of {
		path := filepath.Join(set, fmt.Sprintf("%s_%d.pb", stem, i))
		if _, err := os.Stat(path); err != nil {
			continue
		}
		a, err := onnx.ReadValue(path, onnx.KindOf(v))
		if err != nil {
			return nil, err
		}
		out[v.Name] = a
	}
	return out, nil
}

func toleranceOf(folder string) tolerance {
	tol := tolerance{Relative: 1e-3, Absolute: 1e-7} // tolerance of the ONNX backend test runner
	if b, err := os.ReadFile(filepath.Join(folder, "tolerance.json")); err == nil {
		if err := json.Unmarshal(b, &tol); err != nil {
			panic(err)
		}
	}
	return tol
}

func unzip(t *testing.T, path, folder string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if err := extract(f, filepath.Join(folder, filepath.FromSlash(f.Name))); err != nil {
			t.Fatal(err)
		}
	}
}

func extract(f *zip.File, path string) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
