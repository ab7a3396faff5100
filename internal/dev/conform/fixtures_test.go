package conform

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// material returns a folder with what testdata/make.py makes.
func material(t *testing.T) func(name string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(Python(t), "-B", filepath.Join("testdata", "make.py"),
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(name string) string { return filepath.Join(dir, name) }
}
