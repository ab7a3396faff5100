package evidence

import (
	"os"
	"path/filepath"
	"testing"
)

// The report of a model is the one with its name, or another one next to it that names it, but none of another folder.
func TestReportOf(t *testing.T) {
	_, text := reported(t)
	for _, c := range []struct{ at, model, want string }{
		{"mlp.int8.report.json", "mlp.int8.onnx", "mlp.int8.report.json"},
		{"other.report.json", "mlp.int8.onnx", "other.report.json"},
		{"other.report.json", "mlp.onnx", "other.report.json"},
		{"other.report.json", "missing.onnx", ""},
		{"sub/other.report.json", "mlp.int8.onnx", ""},
		{"other.report.json", "sub/mlp.int8.onnx", ""},
		{"sub/other.report.json", "sub/mlp.int8.onnx", "sub/other.report.json"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.FromSlash(c.at))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := ReportOf(t.Context(), Folder(dir), c.model); err != nil || got != c.want {
			t.Errorf("%s of %s: %q, %v, want %q", c.at, c.model, got, err, c.want)
		}
	}
}
