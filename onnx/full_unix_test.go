//go:build unix

package onnx

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that the system lets grow no further is an error that leaves no files.
func TestFileSizeLimit(t *testing.T) {
	out, err := child(t, "TestChildWithALimit", filepath.Join(t.TempDir(), "model.onnx")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestChildWithALimit(t *testing.T) {
	path := os.Getenv(childPath)
	if path == "" {
		t.Skip("a part of TestFileSizeLimit")
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	noSpace(t, path, false)
	noSpace(t, path, true)
}
