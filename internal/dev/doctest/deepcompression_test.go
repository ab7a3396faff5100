package doctest

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDeepCompressionIsThatOfTheBenchmarks copies the first table of the section from docs/benchmarks.md to README.md.
func TestDeepCompressionIsThatOfTheBenchmarks(t *testing.T) {
	_, section, _ := strings.Cut(read(t, root(t), "docs", "benchmarks.md"), "<!-- deep-compression -->\n")
	_, table, _ := strings.Cut(section, "\n\n| ")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/benchmarks.md has no table of Deep Compression")
	}
	path := filepath.Join(root(t), "README.md")
	page := read(t, path)
	settle(t, path, page, between(t, page, "deep-compression", "| "+table+"\n"))
}
