package doctest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/lint"
)

// title is the start of a package comment, which the table does not repeat.
var title = regexp.MustCompile(`^(?:Package|Command) \S+ (?:is |holds )?`)

// TestPackagesAreListed generates the tables of packages and imports in docs/architecture.md.
func TestPackagesAreListed(t *testing.T) {
	path := filepath.Join(root(t), "docs", "architecture.md")
	page := read(t, path)
	actual := between(t, page, "packages", packageTable(t))
	settle(t, path, page, between(t, actual, "imports", importTable()))
}

func packageTable(t *testing.T) string {
	t.Helper()
	c := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", "./...")
	c.Dir, c.Stderr = root(t), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| package | purpose |\n|---|---|\n")
	for line := range strings.Lines(string(out)) {
		name, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name = strings.TrimPrefix(strings.TrimPrefix(name, lint.Module), "/")
		if name == "" {
			name = "."
		}
		if doc != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.TrimSuffix(title.ReplaceAllString(doc, ""), "."))
		}
	}
	return b.String()
}

func importTable() string {
	var b strings.Builder
	b.WriteString("| part | may import |\n|---|---|\n")
	arrows := lint.Arrows()
	for _, part := range slices.Sorted(maps.Keys(arrows)) {
		targets := "no other part"
		more, limited := lint.StandardOnly()[part]
		if limited {
			targets = "the standard library only"
			if len(more) > 0 {
				targets = "the standard library and `" + strings.Join(more, "`, `") + "` only"
			}
		}
		if len(arrows[part]) > 0 {
			targets = "`" + strings.Join(arrows[part], "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", part, targets)
	}
	return b.String()
}
