package onnx

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A disk that is full is an error that leaves no files: blocks are taken as
// they are written, so it shows in the middle.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mount: %v; TestFileSizeLimit replaces it", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	noSpace(t, filepath.Join(dir, "model.onnx"), false)
	noSpace(t, filepath.Join(dir, "model.onnx"), true)
}
