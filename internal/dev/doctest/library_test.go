package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	program  = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```\n")
	function = regexp.MustCompile("(?m)^\\| (`[A-Z][^|]*) \\|")
)

// TestLibraryProgramsRun runs the programs of docs/guide/library.md, and requires that the functions of its table
// exist.
func TestLibraryProgramsRun(t *testing.T) {
	t.Parallel()
	page := read(t, root(t), "docs", "guide", "library.md")
	sh := newShell(t, checkout(t)).atHome(t)
	programs := program.FindAllStringSubmatch(page, -1)
	if len(programs) < 2 {
		t.Errorf("%d programs in docs/guide/library.md, want 2", len(programs))
	}
	for _, m := range programs {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(m[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, code := sh.run(t, "go run "+file); code != 0 {
			t.Errorf("%s\nexit code %d\n%s", m[1], code, out)
		}
	}
	for _, row := range function.FindAllStringSubmatch(page, -1) {
		for _, name := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			if out, code := sh.run(t, "go doc . "+name[1]); code != 0 {
				t.Errorf("docs/guide/library.md: %s: %s", name[1], out)
			}
		}
	}
}
