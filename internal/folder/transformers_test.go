package folder

import (
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/atomicfile"
)

// Other settings and the order of keys stay; a setting for all models stays as it is.
func TestNameExternalData(t *testing.T) {
	for was, want := range map[string]string{
		`{}`: "{\n  \"transformers.js_config\": {\n    \"use_external_data_format\": {\n      \"a.onnx\": 1\n    }\n  }}",
		`{"z": 1, "b": 1e999}`: "{\n  \"transformers.js_config\": {\n    \"use_external_data_format\": {\n      " +
			"\"a.onnx\": 1\n    }\n  },\"z\": 1, \"b\": 1e999}",
		`{"transformers.js_config":{"use_external_data_format":{"b.onnx":2},"dtype":"q4"},"z":1}`: "{\"transformers.js_config\":{\n    \"dtype\": \"q4\",\n    " +
			"\"use_external_data_format\": {\n      \"a.onnx\": 1,\n      \"b.onnx\": 2\n    }\n  },\"z\":1}",
		`{"transformers.js_config":{"use_external_data_format":true}}`: `{"transformers.js_config":{"use_external_data_format":true}}`,
	} {
		dir := write(t, map[string]string{config: was})
		if err := NameExternalData(dir, []string{"a.onnx"}, atomicfile.Access{}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, config); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if err := NameExternalData(t.TempDir(), []string{"a.onnx"}, atomicfile.Access{}); err != nil {
		t.Errorf("without configuration: %v", err)
	}
	if err := NameExternalData(write(t, map[string]string{config: "["}), []string{"a.onnx"},
		atomicfile.Access{}); err == nil {
		t.Error("malformed configuration is no error")
	}
}

// Files are those next to the model, or next to its folder "onnx"; configuration that differs only in external data is
// the same.
func TestOfTransformers(t *testing.T) {
	hub := write(t, map[string]string{config: `{"z": 1}`, "tokenizer.json": "{}", "other.onnx": "x"})
	for _, model := range []string{filepath.Join(hub, "m.onnx"), filepath.Join(hub, "onnx", "m.onnx")} {
		to := write(t, map[string]string{config: `{"z": 1}`})
		if err := NameExternalData(to, []string{"m.onnx"}, atomicfile.Access{}); err != nil {
			t.Fatal(err)
		}
		f, err := OfTransformers(model, to)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(f.Copied); got != 2 {
			t.Errorf("%s: %d files are copied: %s", model, got, f.Copied)
		}
	}
	if _, err := OfTransformers(filepath.Join(hub, "m.onnx"),
		write(t, map[string]string{config: `{"z": 2}`})); err == nil {
		t.Error("other configuration is no error")
	}
	if f, err := OfTransformers(filepath.Join(t.TempDir(), "onnx", "m.onnx"), t.TempDir()); f != nil || err != nil {
		t.Errorf("without configuration: %v, %v", f, err)
	}
}
