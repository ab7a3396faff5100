package oci

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/registrytest"
)

// A full disk is one error that names the file, and leaves nothing.
func TestOCIPullOntoAFullDisk(t *testing.T) {
	l := pushed(t, withReferrers(t), registrytest.Fixture(t, "mlp"))
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	o := registrytest.Quick
	o.Parallel = 1 // the model is first
	_, err := l.Pull(t.Context(), dir, o)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "mlp.onnx: ") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
