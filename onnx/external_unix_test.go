//go:build unix

package onnx

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe without a writer would wait forever.
func TestExternalDataMayNotBeAPipe(t *testing.T) {
	path := inFolder(t, 8, "location", "pipe")
	if err := syscall.Mkfifo(filepath.Join(filepath.Dir(path), "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	refusesFile(t, path, "regular file")
}

func TestAModelMayNotBeAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.onnx")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(path); err == nil {
		f.Close()
		t.Error("Open took a pipe")
	}
}
