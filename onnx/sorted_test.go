package onnx

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Sorting and saving changes nothing that a model computes, and what ran out of order
// passes the checker then.
func TestSortedModelsCompute(t *testing.T) {
	w := conform.Start(t)
	compared := 0
	for _, path := range conform.Fixtures(t) {
		if _, err := w.Run(path, conform.Options{}); err != nil {
			continue // not even the original runs
		}
		f := mustOpen(t, path)
		for g := range f.Model.Graphs() {
			if err := g.Sort(); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(t.TempDir(), "sorted.onnx")
		mustSave(t, f.Model, out, options(t))
		outputs, err := w.Compare(path, out, conform.Options{})
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
			continue
		}
		for _, o := range outputs {
			if !o.Equal {
				t.Errorf("%s: output %s differs", filepath.Base(path), o.Name)
			}
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d models ran", compared)
	}
}

func TestUnsortedModelIsMended(t *testing.T) {
	w := conform.Start(t)
	f := mustOpen(t, fixture(t, "unsorted.onnx"))
	if w.Check(f.Path, true) == nil {
		t.Fatal("the checker takes the fixture as it is")
	}
	if err := f.Model.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "sorted.onnx")
	mustSave(t, f.Model, out, options(t))
	if err := w.Check(out, true); err != nil {
		t.Error(err)
	}
}
