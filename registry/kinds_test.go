package registry_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

// What is pushed to a folder is listed and pulled. The kinds of other packages have this test there.
func TestKindsOfFolders(t *testing.T) {
	for _, k := range []registrytest.Kind{
		{
			Scheme:   "hf",
			Artifact: compressed(t, "mlp.onnx", "small.onnx"),
			Place:    registrytest.Parse(t, "hf:"+filepath.Join(t.TempDir(), "repository")),
			Changes:  true, // the model has another name, and reports name it
		},
		{
			Scheme:   "dir",
			Artifact: registrytest.Complete(t),
			Place:    registrytest.Parse(t, "dir:"+filepath.Join(t.TempDir(), "models")),
		},
	} {
		t.Run(k.Scheme, k.Test)
	}
}

// A scheme whose client is not imported is an error that names the import, and no path.
func TestKindsThatAreNotImported(t *testing.T) {
	for text, want := range map[string]string{
		"oci://host/m:1":  `this program has no client of OCI registries: import _ "github.com/mcompress/mcompress/registry/oci"`,
		"mlflow://host/m": `this program has no client of MLflow: import _ "github.com/mcompress/mcompress/registry/mlflow"`,
	} {
		if !registry.IsReference(text) {
			t.Errorf("%s is a path", text)
		}
		scheme, rest, _ := strings.Cut(text, "://")
		ref := registry.Reference{Scheme: scheme, Host: "host", Name: strings.TrimPrefix(rest, "host/")}
		_, parsed := registry.Parse(text)
		_, pushed := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registrytest.Quick)
		_, listed := registry.List(t.Context(), ref, registrytest.Quick)
		_, moved := registry.Move(t.Context(), ref, "x", registrytest.Quick)
		for _, err := range []error{parsed, registry.Check(t.Context(), ref, registrytest.Quick), pushed, listed, moved} {
			if !registrytest.IsA[*registry.ReferenceError](err) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// A program may register a kind of its own.
func TestRegister(t *testing.T) {
	registry.Register("test", registry.Kind{Parse: func(rest string) (registry.Reference, error) {
		return registry.Reference{Name: rest}, nil
	}})
	defer registry.Unregister("test")
	if ref := registrytest.Parse(t, "test:x"); ref.String() != "test:x" || !registry.IsReference("test:x") {
		t.Errorf("parsed as %+v", ref)
	}
}

// Each kind is in the guide, in the help of push and pull, and in the error for what is no reference.
func TestEachKindIsDocumented(t *testing.T) {
	_, err := registry.Parse("model.onnx")
	for _, c := range []struct{ where, text, before string }{
		{"the table of docs/guide/registry.md", registrytest.Read(t, filepath.Join("..", "docs", "guide", "registry.md")),
			"\n| `"},
		{"mcompress push --help", registrytest.Read(t,
			filepath.Join("..", "cmd", "mcompress", "testdata", "help", "push.txt")), "\n  "},
		{"mcompress pull --help", registrytest.Read(t,
			filepath.Join("..", "cmd", "mcompress", "testdata", "help", "pull.txt")), "\n  "},
		{"the error of Parse", err.Error(), " "},
	} {
		for _, scheme := range registry.Schemes() {
			if !strings.Contains(c.text, c.before+scheme+":") {
				t.Errorf("%s has no %s:", c.where, scheme)
			}
		}
	}
}
