package naming

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/mcompress/mcompress/registry/oci"
)

func TestOutputs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("dir", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	one, two := []string{"a.onnx"}, []string{"a.onnx", "sub/b"}
	for _, c := range []struct {
		models []string
		output string
		want   []string // nil for an error
	}{
		{one, "", []string{"a.L.onnx"}},
		{one, "out.onnx", []string{"out.onnx"}},
		{one, "file", []string{"file"}},
		{one, "dir", []string{"dir/a.L.onnx"}},
		{one, "new/", []string{"new/a.L.onnx"}},
		{two, "", []string{"a.L.onnx", "sub/b.L.onnx"}},
		{two, "new", []string{"new/a.L.onnx", "new/b.L.onnx"}},
		{two, "file", nil},
		{[]string{"a.onnx", "sub/a.onnx"}, "", []string{"a.L.onnx", "sub/a.L.onnx"}},
		{[]string{"a.onnx", "sub/a.onnx"}, "dir", nil},
		{[]string{"a.onnx", "./a.onnx"}, "", nil},
		{[]string{"oci://host/models/mlp:1.0", "dir:models/mlp"}, "dir", []string{"dir/mlp-1.0.L.onnx", "dir/mlp.L.onnx"}},
		{[]string{"oci://host/models/mlp@sha256:" + strings.Repeat("01", 32)}, "new/", []string{"new/mlp-010101010101.L.onnx"}},
		{[]string{"oci://host/models/mlp:1.0"}, "", nil},
		{[]string{"oci://host/models/mlp"}, "dir", nil},
	} {
		for i := range c.want {
			c.want[i] = filepath.FromSlash(c.want[i])
		}
		got, err := Outputs(c.models, "L", c.output)
		if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%v to %q: %v (%v), want %v", c.models, c.output, got, err, c.want)
		}
	}
}
