package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
	"github.com/mcompress/mcompress/registry"
)

func TestDirOfAnArtifact(t *testing.T) {
	a := registrytest.Fixture(t, "mlp")
	to := filepath.Join(t.TempDir(), "models", "mlp")
	ref := registrytest.Parse(t, "dir:"+to)
	p, err := registry.Push(t.Context(), ref, a, registry.Options{})
	if err != nil || p.Uploaded != p.Size || p.Size != a.Size() {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = registry.Push(t.Context(), ref, a, registry.Options{}); err != nil || p.Uploaded != 0 {
		t.Fatalf("second push: %+v, %v", p, err)
	}
	s, err := registry.List(t.Context(), ref, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range s.Files {
		f.Path = a.Files[i].Path
		if f != a.Files[i] || registrytest.Read(t, filepath.Join(to, f.Name)) != registrytest.Read(t, f.Path) {
			t.Errorf("got %+v, want %+v", f, a.Files[i])
		}
	}
	text, ok := s.Find(registry.ReportText)
	if b, err := s.Read(t.Context(), text, 100); !ok || err != nil || string(b) != "report" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDirOfOtherContent(t *testing.T) {
	to := t.TempDir()
	ref := registrytest.Parse(t, "dir:"+to)
	if err := os.WriteFile(filepath.Join(to, "mlp.onnx"), []byte("other"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"), registry.Options{})
	var conflict *registry.ConflictError
	if !errors.As(err, &conflict) || registrytest.Read(t, filepath.Join(to, "mlp.onnx")) != "other" {
		t.Fatalf("got %v", err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := registry.Push(t.Context(), ref, registrytest.Fixture(t, "mlp"),
		registry.Options{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
}

// Copies of a private model are private.
func TestDirOfAPrivateModel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permissions")
	}
	a := registrytest.Fixture(t, "mlp")
	for _, f := range a.Files {
		if err := os.Chmod(f.Path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir()
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "dir:"+to), a, registry.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if st, err := os.Stat(filepath.Join(to, f.Name)); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name, st.Mode(), err)
		}
	}
}

// A folder can be pushed to if it is one, or can be made; a list has its only model.
func TestFoldersThatCanBePushedTo(t *testing.T) {
	dir := registrytest.Written(t, map[string]string{"file": "x", "sub/x": ""})
	for name, want := range map[string]bool{"": true, "sub": true, "new/below/new": true, "file": false,
		"file/below": false} {
		for _, scheme := range []string{"dir:", "hf:"} {
			if err := registry.Check(t.Context(), registrytest.Parse(t, scheme+filepath.Join(dir, name)),
				registrytest.Quick); (err == nil) != want {
				t.Errorf("%s%s: %v", scheme, name, err)
			}
		}
	}
	mlp := registrytest.Read(t, filepath.Join("..", "fixtures", "mlp.onnx"))
	for models, want := range map[string]string{"a.onnx": "", "a.onnx b.onnx": "the folder has 2 ONNX models, not one",
		"a.txt": "the folder has 0 ONNX models"} {
		files := map[string]string{}
		for _, name := range strings.Fields(models) {
			files[name] = mlp
		}
		l, err := registry.List(t.Context(), registrytest.Parse(t, "dir:"+registrytest.Written(t, files)), registrytest.Quick)
		if want == "" && (err != nil || registrytest.Names(l.Files) != "model:a.onnx") ||
			want != "" && (!registrytest.IsA[*registry.ReferenceError](err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", models, err)
		}
	}
	if _, err := registry.List(t.Context(), registrytest.Parse(t, "dir:"+filepath.Join(dir, "none")),
		registrytest.Quick); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := registry.List(t.Context(),
		registrytest.Parse(t, "dir:"+registrytest.Written(t, map[string]string{"x.onnx": "none"})),
		registrytest.Quick); err == nil {
		t.Error("what is no model is listed")
	}
	if _, err := registry.Move(t.Context(), registrytest.Parse(t, "dir:"+dir), "x",
		registrytest.Quick); !registrytest.IsA[*registry.ReferenceError](err) {
		t.Errorf("a folder has tags: %v", err)
	}
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "dir:"+dir), &registry.Artifact{},
		registrytest.Quick); err == nil {
		t.Error("an artifact without a model is pushed")
	}
	if _, err := registry.Push(t.Context(), registrytest.Parse(t, "dir:"+dir),
		&registry.Artifact{Files: []registry.File{{Name: "m.onnx", Path: filepath.Join(dir, "none"), Role: registry.Model,
			SHA256: registrytest.Sum(nil)}}}, registrytest.Quick); err == nil {
		t.Error("a file that is missing is pushed")
	}
}
