package onnx

import (
	"bytes"
	"path/filepath"
	"testing"
)

// The fixture has a doc string and properties at every level, and fields of a later schema.
func TestStripLeavesTheMetadataOfTheModel(t *testing.T) {
	f := mustOpen(t, fixture(t, "metadata.onnx"))
	if f.Metadata() == 0 {
		t.Fatal("the fixture has no metadata")
	}
	for _, external := range []bool{false, true} {
		plan := Layout(f.Model, "out.onnx", LayoutOptions{External: external, Strip: true})
		kept := Layout(f.Model, "out.onnx", LayoutOptions{External: external})
		if saved := kept.Size() - plan.Size(); saved < f.Metadata() || plan.Metadata() != 0 ||
			kept.Metadata() != f.Metadata() {
			t.Errorf("%d bytes saved, %d and %d of metadata planned, want %d, 0 and %d", saved, plan.Metadata(), kept.Metadata(),
				f.Metadata(), f.Metadata())
		}
		out := filepath.Join(t.TempDir(), "out.onnx")
		if _, err := plan.Write(t.Context(), out, options(t)); err != nil {
			t.Fatal(err)
		}
		again := mustOpen(t, out)
		if again.Metadata() != 0 || len(again.Model.Meta) != len(f.Model.Meta) {
			t.Errorf("%d bytes of metadata, %d properties of the model, want 0 and %d", again.Metadata(), len(again.Model.Meta),
				len(f.Model.Meta))
		}
		text := readFile(t, out)
		for _, gone := range []string{"a node", "a graph", "a value", "holder"} {
			if bytes.Contains(text, []byte(gone)) {
				t.Errorf("%q is still there", gone)
			}
		}
		for _, stays := range []string{"a model", "license", "SCALE_TENSOR"} {
			if !bytes.Contains(text, []byte(stays)) {
				t.Errorf("%q is gone", stays)
			}
		}
	}
}
