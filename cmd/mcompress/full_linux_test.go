package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// The disk of the reports, or that of the model, is full: exit code 1, one line that names the file, and existing files
// are unchanged.
func TestFullDisk(t *testing.T) {
	source := filepath.Join(filepath.Dir(conform.Fixtures(t)[0]), "mlp.onnx")
	full, free := prepared(t, "full"), prepared(t, "free")
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(full, 0); err != nil {
			t.Error(err)
		}
	}()
	old := filepath.Join(free, "out.onnx")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, file string }{
		{"-o " + old + " --report-dir " + full, "out.report."},
		{"-o " + filepath.Join(full, "out.onnx") + " --report-dir " + free, "out.onnx"},
		{"--method static-int8 -o " + old + " --save-ranges " + filepath.Join(full, "ranges.json") +
			" --report-dir " + full, "out.report."},
	} {
		code, _, stderr := call(append([]string{"quantize", source, "-q"}, strings.Fields(c.args)...)...)
		if code != exitIO || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, filepath.Join(full, c.file)) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
		for _, dir := range []string{full, free} {
			left, err := os.ReadDir(dir)
			if err != nil || dir == full && len(left) > 0 || dir == free && len(left) != 1 {
				t.Errorf("%s: left in %s: %v %v", c.args, filepath.Base(dir), left, err)
			}
		}
		if b, err := os.ReadFile(old); err != nil || string(b) != "old" {
			t.Errorf("%s: the model was replaced: %v", c.args, err)
		}
	}
}
