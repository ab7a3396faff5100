package ort

import (
	"os"
	"path/filepath"
	"testing"
)

// The layouts of pip on Unix, on Debian, on Windows and with --target.
func TestPythonFolders(t *testing.T) {
	for _, site := range []string{"lib/python3.12/site-packages", "lib/python3.11/dist-packages", "Lib/site-packages",
		""} {
		prefix := filepath.Join(t.TempDir(), "[prefix]")
		want := filepath.Join(prefix, filepath.FromSlash(site), "onnxruntime", "capi")
		if err := os.MkdirAll(want, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := pythonFolders(prefix); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := pythonFolders(t.TempDir()); len(got) > 0 {
		t.Errorf("got %q in an empty folder", got)
	}
}
