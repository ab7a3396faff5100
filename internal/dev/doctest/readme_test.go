package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// outputs are the names of files that the tool writes next to a fixture: they have two dots.
var outputs = regexp.MustCompile(`[^/\\]*\.[^/\\]*\.[^/\\]*$`)

// blocks are the fenced blocks that a reader may paste: sh has commands, console has commands after a $ with their
// output.
var blocks = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```\n")

// TestREADMEIsWhatItsCommandsPrint runs the blocks of README.md in order, on a fresh checkout, and compares their
// output.
func TestREADMEIsWhatItsCommandsPrint(t *testing.T) {
	t.Parallel()
	runPage(t, "README.md")
}

// TestGuideIsWhatItsCommandsPrint does the same for each page of the guide.
func TestGuideIsWhatItsCommandsPrint(t *testing.T) {
	pages, err := conform.Matching(root(t), "docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 8 {
		t.Errorf("%d pages in docs/guide, want 8", len(pages))
	}
	for _, p := range pages {
		name := filepath.Base(p)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runPage(t, "docs/guide/"+name)
		})
	}
}

func runPage(t *testing.T, page string) {
	t.Helper()
	path := filepath.Join(root(t), filepath.FromSlash(page))
	written := read(t, path)
	sh := newShell(t, checkout(t))
	actual := blocks.ReplaceAllStringFunc(written, func(block string) string {
		m := blocks.FindStringSubmatch(block)
		if m[1] == "sh" {
			runs(t, sh, m[2])
			return block
		}
		return "```console\n" + transcript(t, sh, m[2]) + "```\n"
	})
	settle(t, path, written, actual)
}

// runs requires exit code 0 of each command of an sh block.
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

// transcript is a console block with the present output of its commands.
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
var tails = regexp.MustCompile(`(cosine (?:similarity )?0\.\d{4})\d+`)

// settle compares a page with its actual text, and writes it with -update.
func settle(t *testing.T, path, written, actual string) {
	t.Helper()
	if tails.ReplaceAllString(written, "$1") == tails.ReplaceAllString(actual, "$1") || t.Failed() {
		return
	}
	if !*update {
		t.Errorf("%s is outdated (go test ./internal/dev/doctest -update):\n%s", filepath.Base(path),
			firstDifference(written, actual))
		return
	}
	if err := os.WriteFile(path, []byte(actual), 0o644); err != nil {
		t.Fatal(err)
	}
}

func firstDifference(written, actual string) string {
	a, b := strings.Split(written, "\n"), strings.Split(actual, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "page:   " + a[i] + "\nactual: " + strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		}
	}
	return "actual: " + b[len(a)]
}
