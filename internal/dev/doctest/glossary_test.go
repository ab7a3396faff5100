package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	flagName    = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	commandName = regexp.MustCompile(`(?m)^\s+([a-z]+)\s`)
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	methodName  = regexp.MustCompile("(?m)^\\| \\[`([^`]+)`\\]")
)

// TestGlossaryNamesWhatExists requires that each flag, method, command and package in the last column of
// docs/glossary.md exists.
func TestGlossaryNamesWhatExists(t *testing.T) {
	known := map[string]bool{}
	methods := read(t, root(t), "docs", "methods.md")
	for _, m := range methodName.FindAllStringSubmatch(methods, -1) {
		known[m[1]] = true
	}
	sh := newShell(t, checkout(t))
	help, _ := sh.run(t, "mcompress --help")
	texts := []string{methods, help}
	for _, m := range commandName.FindAllStringSubmatch(help, -1) {
		if text, code := sh.run(t, "mcompress "+m[1]+" --help"); code == 0 {
			known[m[1]] = true
			texts = append(texts, text)
		}
	}
	for _, f := range flagName.FindAllString(strings.Join(texts, "\n"), -1) {
		known[f] = true
	}
	rows := 0
	for line := range strings.Lines(read(t, root(t), "docs", "glossary.md")) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) != 4 || cells[0] == "term" {
			continue
		}
		rows++
		for _, m := range codeSpan.FindAllStringSubmatch(cells[3], -1) {
			_, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(m[1]), "."))
			if !known[m[1]] && err != nil {
				t.Errorf("docs/glossary.md: %s: there is no flag, method, command or package %s", cells[0], m[1])
			}
		}
	}
	if rows < 50 {
		t.Errorf("docs/glossary.md has %d terms, want 50", rows)
	}
}
