package registry

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// written writes files into a new folder and returns it.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func parse(t *testing.T, text string) Reference {
	t.Helper()
	ref, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fixture returns the artifact of a copy of a fixture with a report as text.
func fixture(t *testing.T, name string) *Artifact {
	t.Helper()
	model := read(t, filepath.Join("..", "fixtures", name+".onnx"))
	dir := written(t, map[string]string{name + ".onnx": model, name + ".report.md": "report"})
	a, err := Collect(t.Context(), filepath.Join(dir, name+".onnx"), CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDirOfAnArtifact(t *testing.T) {
	a := fixture(t, "mlp")
	to := filepath.Join(t.TempDir(), "models", "mlp")
	ref := parse(t, "dir:"+to)
	p, err := Push(t.Context(), ref, a, Options{})
	if err != nil || p.Uploaded != p.Size || p.Size != a.Size() {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = Push(t.Context(), ref, a, Options{}); err != nil || p.Uploaded != 0 {
		t.Fatalf("second push: %+v, %v", p, err)
	}
	s, err := List(t.Context(), ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range s.Files {
		f.Path = a.Files[i].Path
		if f != a.Files[i] || read(t, filepath.Join(to, f.Name)) != read(t, f.Path) {
			t.Errorf("got %+v, want %+v", f, a.Files[i])
		}
	}
	text, ok := s.Find(ReportText)
	if b, err := s.Read(t.Context(), text, 100); !ok || err != nil || string(b) != "report" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDirOfOtherContent(t *testing.T) {
	to := t.TempDir()
	ref := parse(t, "dir:"+to)
	if err := os.WriteFile(filepath.Join(to, "mlp.onnx"), []byte("other"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Push(t.Context(), ref, fixture(t, "mlp"), Options{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || read(t, filepath.Join(to, "mlp.onnx")) != "other" {
		t.Fatalf("got %v", err)
	}
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := Push(t.Context(), ref, fixture(t, "mlp"), Options{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
}

// Copies of a private model are private.
func TestDirOfAPrivateModel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permissions")
	}
	a := fixture(t, "mlp")
	for _, f := range a.Files {
		if err := os.Chmod(f.Path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir()
	if _, err := Push(t.Context(), parse(t, "dir:"+to), a, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if st, err := os.Stat(filepath.Join(to, f.Name)); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name, st.Mode(), err)
		}
	}
}
