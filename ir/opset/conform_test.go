package opset

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// newestRun is the newest opset that the pinned ONNX Runtime loads.
const newestRun = int64(26)

func save(t *testing.T, m *ir.Model, path string) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	if _, err := onnx.Save(context.Background(), m, path,
		onnx.SaveOptions{Workers: 1, Memory: 1 << 28, Eval: e}); err != nil {
		t.Fatal(err)
	}
}

// raiseTo raises m as a caller would that lets new constants be no inputs.
func raiseTo(t *testing.T, m *ir.Model, to int64) error {
	t.Helper()
	if err := raise(t, m, to); err != nil {
		return err
	}
	if err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	m.IRVersion = max(m.IRVersion, IRVersion(to))
	return nil
}

// Every case runs in ONNX Runtime as it was and as it became, at the rule's own
// version and at the newest.
func TestRulesKeepTheOutputs(t *testing.T) {
	w := conform.Start(t)
	dir := t.TempDir()
	for _, c := range cases() {
		if c.refused != "" {
			continue
		}
		newest := cmp.Or(c.newest, newestRun)
		for _, to := range []int64{min(c.to, newest), newest} {
			t.Run(c.label(), func(t *testing.T) {
				before, after := filepath.Join(dir, "before.onnx"), filepath.Join(dir, "after.onnx")
				m := c.model()
				save(t, m, before)
				restore := c.strip(m)
				if err := raiseTo(t, m, to); err != nil {
					t.Fatal(err)
				}
				restore()
				save(t, m, after)
				if c.fails == noKernel && m.Graph.Outputs[0].Type != nil {
					if err := w.Check(after, true); err != nil {
						t.Error(err)
					}
				}
				c.sameOutputs(t, w, before, after)
			})
		}
	}
}

func (c ruleCase) sameOutputs(t *testing.T, w *conform.Worker, before, after string) {
	t.Helper()
	outputs, err := w.Compare(before, after, conform.Options{Level: "none"})
	if c.fails == noKernel && err != nil {
		return
	}
	if c.fails != "" && c.fails != noKernel {
		if err == nil {
			t.Errorf("ONNX Runtime was expected to fail: %s", c.fails)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, outputs)
}

// wantSame allows for what another kernel of the same operator rounds differently.
func wantSame(t *testing.T, outputs []conform.Output) {
	t.Helper()
	for _, o := range outputs {
		if !o.Equal && !(o.SQNR > 100) {
			t.Errorf("output %s: %+v", o.Name, o)
		}
	}
}

// sharedModels are the real models by name.
func sharedModels(t *testing.T) map[string]string {
	t.Helper()
	models := map[string]string{}
	for _, p := range conform.RealModels(t) {
		models[filepath.Base(filepath.Dir(p))] = p
	}
	return models
}

func openModel(t *testing.T, path string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// The opsets that compression forms ask for.
func TestSharedModelsKeepTheirOutputs(t *testing.T) {
	w := conform.Start(t)
	models := sharedModels(t)
	for i, name := range slices.Sorted(maps.Keys(models)) {
		path := models[name]
		for _, to := range append(conform.Sampled(i, []int64{11, 13, 16, 18, 21}), newestRun) {
			t.Run(name, func(t *testing.T) {
				m := openModel(t, path)
				from := m.Opset("")
				if from >= to {
					return
				}
				err := raiseTo(t, m, to)
				var no *Unsupported
				if name == "style_candy" && errors.As(err, &no) && no.Op == "ImageScaler" {
					return
				}
				if err != nil {
					t.Fatalf("%d to %d: %v", from, to, err)
				}
				after := filepath.Join(t.TempDir(), "after.onnx")
				save(t, m, after)
				sameModel(t, w, path, after)
			})
		}
	}
}

func sameModel(t *testing.T, w *conform.Worker, before, after string) {
	t.Helper()
	if w.Check(before, true) == nil {
		if err := w.Check(after, true); err != nil {
			t.Error(err)
		}
	}
	if strings.Contains(before, "custom_domain") {
		return // runs nowhere
	}
	outputs, err := w.Compare(before, after, conform.Options{Level: "none"})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, outputs)
}

// ONNX's own tests of single operators, at whatever opset they were written for.
func TestArchivesKeepTheirOutputs(t *testing.T) {
	w := conform.Start(t)
	dir := t.TempDir()
	for _, archive := range []string{"onnx_node_tests", "onnx_backend_other"} {
		unpack(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", archive+".zip"), dir)
	}
	raised := 0
	for i, path := range modelsBelow(t, dir) {
		if _, err := w.Compare(path, path, conform.Options{Level: "none"}); err != nil {
			continue
		}
		for _, to := range conform.Sampled(i, []int64{13, 21, newestRun}) {
			m := openModel(t, path)
			if from := m.Opset(""); from == 0 || from >= to {
				continue
			}
			name := strings.TrimPrefix(filepath.Dir(path), dir)
			if strings.HasSuffix(name, "test_swish") {
				continue // has no kernel after opset 24
			}
			if err := raiseTo(t, m, to); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			raised++
			after := filepath.Join(dir, "after.onnx")
			save(t, m, after)
			t.Run(name, func(t *testing.T) { sameModel(t, w, path, after) })
		}
	}
	if want := 700; raised < want || conform.Exhaustive() && raised < 3*want {
		t.Errorf("only %d models were raised", raised)
	}
}

func modelsBelow(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "model.onnx" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	r, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.CopyFS(dir, r); err != nil {
		t.Fatal(err)
	}
}
