package registry_test

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]registry.Reference{
		"dir:models/mlp": {Scheme: "dir", Name: "models/mlp"},
		"dir:/a b":       {Scheme: "dir", Name: "/a b"},
	} {
		if got := registrytest.Parse(t, text); got != want || got.String() != text || !registry.IsReference(text) {
			t.Errorf("%s: got %+v, %s", text, got, got)
		}
	}
	for text, want := range map[string]string{
		"":              "use oci://",
		"models/mlp":    "use oci://",
		"s3://bucket/x": "use oci://",
		"dir:":          "the path of a folder is missing",
	} {
		if _, err := registry.Parse(text); !registrytest.IsA[*registry.ReferenceError](err) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, path := range []string{"model.onnx", "/a:b/model.onnx", `C:\models`, "oci", "dir"} {
		if registry.IsReference(path) {
			t.Errorf("%s is a path", path)
		}
	}
}
