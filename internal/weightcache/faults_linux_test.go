package weightcache_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// On a full disk, and in a folder that cannot be written, sessions run without a cache and leave no files but small
// ones.
func TestFoldersThatCannotBeWritten(t *testing.T) {
	for name, disk := range map[string]struct {
		flags uintptr
		size  string
		err   error
	}{"full": {0, "size=64k,mode=700", syscall.ENOSPC}, "read-only": {syscall.MS_RDONLY, "mode=700", syscall.EROFS}} {
		t.Run(name, func(t *testing.T) {
			c := newFolder(t)
			path := filepath.Join(t.TempDir(), "model.onnx")
			model(t, path, 1)
			if err := os.Mkdir(c.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", c.Dir, "tmpfs", disk.flags, disk.size); err != nil {
				t.Skipf("mount: %v", err)
			}
			defer func() {
				if err := syscall.Unmount(c.Dir, 0); err != nil {
					t.Error(err)
				}
			}()
			got := c.run(t, path)
			if err := errors.Join(c.warnings...); got != k || !errors.Is(err, disk.err) {
				t.Errorf("got %v and warnings %v, want %v", got, err, disk.err)
			}
			entries, err := os.ReadDir(c.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !strings.HasSuffix(e.Name(), ".digest") {
					t.Errorf("left: %s", e.Name())
				}
			}
		})
	}
}

// A named pipe in place of a file does not block.
func TestPipesInTheCache(t *testing.T) {
	for _, suffix := range []string{".weights", ".digest"} {
		c := newFolder(t)
		path := filepath.Join(t.TempDir(), "model.onnx")
		model(t, path, 1)
		c.run(t, path)
		c.settle(t)
		file := c.files(t, suffix)[0]
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
		c.settle(t)
		if got := c.run(t, path); got != k || len(c.warnings) == 0 {
			t.Errorf("%s: got %v and warnings %v", suffix, got, c.warnings)
		}
	}
}
