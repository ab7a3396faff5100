package onnx

import (
	"archive/zip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// options are those of a plain Save in a test.
func options(t testing.TB) SaveOptions {
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return SaveOptions{Workers: 2, Memory: 64 << 20, Eval: e}
}

func mustOpen(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func mustSave(t testing.TB, m *ir.Model, path string, o SaveOptions) []Written {
	t.Helper()
	ws, err := Save(context.Background(), m, path, o)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// fixture is a file of the repository's own models.
func fixture(t testing.TB, name string) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "fixtures", name)
}

// unzip writes an archive's models into a new folder.
func unzip(t testing.TB, archive string) string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, ".onnx") {
			extract(t, f, filepath.Join(dir, filepath.FromSlash(f.Name)))
		}
	}
	return dir
}

func extract(t testing.TB, f *zip.File, path string) {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
