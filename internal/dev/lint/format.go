package lint

import (
	"fmt"
	"go/format"
	"path"
	"slices"
	"strings"
)

// maxLines is the length from which a file holds more than one idea. Generated files and tables of
// tests may be longer than they should, hand-written ones may not.
const maxLines = 500

func unformatted(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.goFiles() {
		want, err := format.Source([]byte(f.Text))
		if err != nil || string(want) != f.Text {
			found = append(found, Problem{f.Path, 0, "not formatted: run gofmt -w"})
		}
	}
	return found
}

func longFiles(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.Files {
		n := strings.Count(f.Text, "\n")
		if n > maxLines && !f.IsGenerated() && !slices.Contains([]string{".md", ".s", ".json"}, path.Ext(f.Path)) {
			found = append(found, Problem{f.Path, 0, fmt.Sprintf("%d lines: split it by ideas, %d are the limit", n, maxLines)})
		}
	}
	return found
}
