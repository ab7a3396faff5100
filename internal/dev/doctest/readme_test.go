package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outputs are the names of what the tool writes beside a fixture: they have two dots.
var outputs = regexp.MustCompile(`[^/\\]*\.[^/\\]*\.[^/\\]*$`)

// blocks are the README's fenced blocks that a reader may paste: sh are commands, console
// are commands behind a $ with what they print.
var blocks = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```\n")

// TestREADMEIsWhatItsCommandsPrint runs the blocks from top to bottom, as a new user would
// on a fresh checkout, and holds the output that it shows against the real one.
func TestREADMEIsWhatItsCommandsPrint(t *testing.T) {
	path := filepath.Join(root(t), "README.md")
	was := read(t, path)
	sh := newShell(t, checkout(t))
	is := blocks.ReplaceAllStringFunc(was, func(block string) string {
		m := blocks.FindStringSubmatch(block)
		if m[1] == "sh" {
			runs(t, sh, m[2])
			return block
		}
		return "```console\n" + transcript(t, sh, m[2]) + "```\n"
	})
	if strings.Count(is, "\n$ mcompress ") < 3 {
		t.Error("README.md shows no output")
	}
	settle(t, path, was, is)
}

// runs wants each command of an sh block to end well.
func runs(t *testing.T, sh *shell, block string) {
	t.Helper()
	for line := range strings.Lines(block) {
		if strings.HasPrefix(line, "make ") {
			continue // this test is part of it
		}
		in := sh
		if strings.HasPrefix(line, "go ") {
			in = sh.atHome(t)
		}
		if out, code := in.run(t, line); code != 0 {
			t.Errorf("%sexit code %d\n%s", line, code, out)
		}
	}
}

// transcript is a console block with what its commands print now.
func transcript(t *testing.T, sh *shell, block string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out, code := sh.run(t, command)
			if code != 0 {
				t.Errorf("%sexit code %d\n%s", line, code, out)
			}
			b.WriteString(line + out)
		}
	}
	return b.String()
}

// tails are the digits of a cosine that depend on the instruction set, as sums of float32 do.
var tails = regexp.MustCompile(`(cosine 0\.\d{4})\d+`)

// settle fails if a page is not what it should be, or writes it.
func settle(t *testing.T, path, was, is string) {
	t.Helper()
	if tails.ReplaceAllString(was, "$1") == tails.ReplaceAllString(is, "$1") || t.Failed() {
		return
	}
	if !*update {
		t.Errorf("%s is not what its commands say now (go test ./internal/dev/doctest -update):\n%s", filepath.Base(path), firstDifference(was, is))
		return
	}
	if err := os.WriteFile(path, []byte(is), 0o644); err != nil {
		t.Fatal(err)
	}
}

func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "page:    " + a[i] + "\ncommand: " + strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		}
	}
	return "command: " + b[len(a)]
}
