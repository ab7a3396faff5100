package lint

import "go/format"

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
