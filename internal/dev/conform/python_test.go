package conform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Versions are those that Python itself finds: a folder of PYTHONPATH precedes the installed packages.
func TestUnpinnedPackagesAreNamed(t *testing.T) {
	python := Python(t)
	if err := unpinned(python); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	older := filepath.Join(dir, "numpy-1.26.4.dist-info")
	if err := os.Mkdir(older, 0o755); err != nil {
		t.Fatal(err)
	}
	metadata := []byte("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
	if err := os.WriteFile(filepath.Join(older, "METADATA"), metadata, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	err := unpinned(python)
	if err == nil || !strings.Contains(err.Error(), "numpy 1.26.4 is not the pinned 2.") ||
		strings.Contains(err.Error(), "scipy") {
		t.Errorf("got %v", err)
	}

	// Tests that start the worker or a script of their own fail with that error: another spelling of the path is not
	// asked before.
	t.Setenv("MCOMPRESS_PYTHON", filepath.Dir(python)+"/./"+filepath.Base(python))
	for name, use := range map[string]func(testing.TB){
		"Start":  func(t testing.TB) { Start(t) },
		"Python": func(t testing.TB) { Python(t) },
	} {
		if r := record(use); !r.failed || r.skipped {
			t.Errorf("%s: skipped %v, failed %v", name, r.skipped, r.failed)
		}
	}
}

// A Python without packages, as of a distribution, fails tests by naming what it lacks.
func TestMissingPackagesAreNamed(t *testing.T) {
	python := Python(t)
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := Command(python, "-m", "venv", "--without-pip", "--symlinks", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	err := unpinned(filepath.Join(venv, "bin", "python"))
	if err == nil || !strings.Contains(err.Error(), " is missing") ||
		!strings.Contains(err.Error(), "make environments") {
		t.Errorf("got %v", err)
	}
}
