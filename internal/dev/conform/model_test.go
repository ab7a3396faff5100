package conform

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replaced writes a copy of the model with the first occurrence of one byte string
// replaced by another of the same length.
func replaced(t *testing.T, path string, old, with []byte) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, old) {
		t.Fatalf("%s does not hold %x", path, old)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(out, bytes.Replace(data, old, with, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestParsesRejectsWhatIsNoModel(t *testing.T) {
	w, at := Start(t), material(t)
	if err := w.Parses(at("mlp.onnx")); err != nil {
		t.Error(err)
	}
	if err := w.Parses(at("mlp_lost.onnx")); err != nil {
		t.Errorf("lost external data: %v", err)
	}
	if err := w.Parses(at("labelled.npz")); err == nil {
		t.Error("an .npz parsed")
	}
}

func TestCheckReadsExternalDataAndShapes(t *testing.T) {
	w, at := Start(t), material(t)
	for _, name := range []string{"mlp.onnx", "mlp_external.onnx"} {
		if err := w.Check(at(name), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.Check(at("mlp_lost.onnx"), false); err == nil {
		t.Error("lost external data passed")
	}
	halved := replaced(t, at("mlp.onnx"), []byte("\x08\x20\x08\x40"), []byte("\x08\x10\x08\x40"))
	if err := w.Check(halved, true); err == nil {
		t.Error("16 rows of data for 32 passed")
	}
}

func TestEqualReadsExternalData(t *testing.T) {
	w, at := Start(t), material(t)
	if err := w.Equal(at("mlp.onnx"), at("mlp_external.onnx")); err != nil {
		t.Error(err)
	}
	if err := w.Equal(at("mlp.onnx"), at("mlp_lost.onnx")); err == nil {
		t.Error("a model without its data is equal to one with it")
	}
	if err := w.EqualReferences(at("mlp_lost.onnx"), at("mlp_lost.onnx")); err != nil {
		t.Error(err)
	}
	if err := w.EqualReferences(at("mlp_external.onnx"), at("mlp_lost.onnx")); err == nil {
		t.Error("references to two files are equal")
	}
}

func TestEqualNamesTheFirstDifference(t *testing.T) {
	w, at := Start(t), material(t)
	for name, c := range map[string]struct{ old, with, want string }{
		"text":   {"Relu", "Tanh", `graph.node[1].op_type: 'Relu' and 'Tanh'`},
		"number": {"\x08\x08", "\x08\x09", "ir_version: 8 and 9"},
	} {
		err := w.Equal(at("mlp.onnx"), replaced(t, at("mlp.onnx"), []byte(c.old), []byte(c.with)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	err := w.Equal(at("mlp.onnx"), at("mlp_noisy.onnx"))
	if err == nil || !strings.Contains(err.Error(), "initializer[0] 'w'.raw_data: 8192 and 8192 bytes, first at 0") {
		t.Errorf("payload: got %v", err)
	}
}

func TestEqualSeesPresenceAndUnknownFields(t *testing.T) {
	w, at := Start(t), material(t)
	data, err := os.ReadFile(at("mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ more, want string }{
		"presence": {"\x12\x00", "model.producer_name: only in the second"}, // producer_name = ""
		"unknown":  {"\xc8\x3e\x01", "model: unknown fields differ"},        // field 1001 = 1
	} {
		path := filepath.Join(t.TempDir(), "more.onnx")
		if err := os.WriteFile(path, append(slices.Clip(data), c.more...), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := w.Equal(at("mlp.onnx"), path); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestEqualValuesReadsTypedFieldsAsBytes(t *testing.T) {
	w := Start(t)
	dir := t.TempDir()
	if _, err := w.GenerateSet(dir); err != nil {
		t.Fatal(err)
	}
	typed, outside := filepath.Join(dir, "everywhere.onnx"), filepath.Join(dir, "external_everywhere.onnx")
	err := w.EqualValues(typed, outside)
	if err == nil || !strings.Contains(err.Error(), "raw_data") {
		t.Errorf("other values: got %v, want a difference in raw_data", err)
	}
	if err := w.Equal(typed, outside); err == nil || strings.Contains(err.Error(), "bytes, first") {
		t.Errorf("another field: got %v, want a field that only one has", err)
	}
}
