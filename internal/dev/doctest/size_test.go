package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var sizeMark = regexp.MustCompile(`<!-- size -->(\d+) MiB<!-- /size -->`)

// TestBinarySizeIsMeasured compares the size of the stripped binary in README.md, to 1 MiB.
func TestBinarySizeIsMeasured(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "mcompress")
	c := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./cmd/mcompress")
	c.Dir, c.Env = root(t), plain()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
