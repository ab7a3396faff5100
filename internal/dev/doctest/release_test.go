package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var sizeMark = regexp.MustCompile(`<!-- size -->(\d+) MiB<!-- /size -->`)

// TestRelease checks the binary of make release: its version, and its size, which is in README.md, to 1 MiB.
func TestRelease(t *testing.T) {
	const version = "v1.2.3-test"
	binary := filepath.Join(t.TempDir(), "mcompress")
	output(t, "make", "release", "VERSION="+version, "BINARY="+binary)
	if got := output(t, binary, "--version"); !slices.Contains(strings.Fields(got), version) {
		t.Errorf("--version of %s printed %q", version, got)
	}
	compareSize(t, binary)
}

// output is what a command that runs in the root folder printed.
func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	c := exec.Command(name, arguments...)
	c.Dir, c.Env = root(t), plain()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func compareSize(t *testing.T, binary string) {
	t.Helper()
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root(t), "README.md")
	page := read(t, path)
	m := sizeMark.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("README.md has no size of the binary")
	}
	written, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	mib := float64(info.Size()) / (1 << 20)
	if mib > written-1 && mib < written+1 {
		return
	}
	settle(t, path, page, sizeMark.ReplaceAllString(page, fmt.Sprintf("<!-- size -->%.0f MiB<!-- /size -->", mib)))
}
