package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestTrackedFiles(t *testing.T) {
	root := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte("package p\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(arguments ...string) {
		if out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", arguments, err, out)
		}
	}
	write("a.go")
	write("deleted.go")
	git("init", "-q")
	git("add", ".")
	write("untracked.go")
	if err := os.Remove(filepath.Join(root, "deleted.go")); err != nil {
		t.Fatal(err)
	}
	names, err := Tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"a.go"}) {
		t.Errorf("got %q, want a.go only", names)
	}
}
