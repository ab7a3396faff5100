package doctest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// link matches the target of a Markdown link.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksHaveTargets checks the links between files of the repository.
func TestLinksHaveTargets(t *testing.T) {
	top := root(t)
	for _, page := range pages(t, top) {
		for _, m := range link.FindAllStringSubmatch(read(t, top, page), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path.Join(path.Dir(page), target)
			if target == "" {
				file = page
			}
			if _, err := os.Stat(filepath.Join(top, file)); err != nil {
				t.Errorf("%s: the link %s has no target", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, top, file)), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, file, anchor)
			}
		}
	}
}

// pages are the hand-written Markdown files, without test data.
func pages(t *testing.T, top string) []string {
	t.Helper()
	names, err := conform.Tracked(top)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(names, func(name string) bool {
		return path.Ext(name) != ".md" ||
			strings.Contains(name, "testdata/")
	})
	if !slices.Contains(list, "README.md") {
		t.Fatal("no README.md")
	}
	return list
}

var (
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that GitHub gives a page's headings.
func anchors(page string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

// TestDecisionsAreListed compares the index of decisions with the folder.
func TestDecisionsAreListed(t *testing.T) {
	folder := filepath.Join(root(t), "docs", "decisions")
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, folder, "README.md")
	for _, f := range files {
		name := filepath.Base(f)
		if name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
	}
}

var (
	required = regexp.MustCompile(`(?m)^(?:require |\t)(\S+) v\S+`)
	module   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// TestModulesAreListed requires a line for each module in go.mod, and no other.
func TestModulesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range module.FindAllStringSubmatch(read(t, root(t), "docs", "decisions", "dependencies.md"), -1) {
		listed[m[1]] = true
	}
	needed := map[string]bool{}
	for _, file := range []string{"go.mod", "internal/kernel/gen/go.mod"} {
		for _, m := range required.FindAllStringSubmatch(read(t, root(t), file), -1) {
			needed[m[1]] = true
		}
	}
	for name := range needed {
		if !listed[name] {
			t.Errorf("docs/decisions/dependencies.md has no line for %s", name)
		}
	}
	for name := range listed {
		if !needed[name] {
			t.Errorf("docs/decisions/dependencies.md has a line for %s, which no go.mod requires", name)
		}
	}
}
