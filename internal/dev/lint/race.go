package lint

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// raceList is the file with the tests that run under the race detector.
const raceList = ".ci/race-tests"

// raceTests compares the list with the tree: a test that was renamed would no longer run under the race detector,
// without a failure, and neither would those of a new package.
func raceTests(t *Tree) []Problem {
	var found []Problem
	listed, tests := map[string]bool{}, testNames(t)
	for _, f := range t.Files {
		if f.Path != raceList {
			continue
		}
		for i, line := range strings.Split(f.Text, "\n") {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0] == "#" {
				continue
			}
			listed[fields[0]] = true
			for _, name := range fields[1:] {
				if !tests[fields[0]][name] {
					found = append(found, Problem{f.Path, i + 1,
						"no test " + name + " in " + fields[0] + ": name the one that is there now"})
				}
			}
		}
	}
	concurrent := map[string]*File{} // the first file that starts goroutines, by package
	for _, f := range t.goFiles(built, t.inRootModule) {
		if concurrent[f.Dir()] == nil && startsGoroutines(f) && !f.within("internal/dev", "packaging", "fixtures") {
			concurrent[f.Dir()] = f
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(concurrent)) {
		if !listed[dir] {
			found = append(found, Problem{concurrent[dir].Path, 0,
				"starts goroutines: add tests of " + dir + " to " + raceList})
		}
	}
	return found
}

// testNames are the tests by folder.
func testNames(t *Tree) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	for _, f := range t.goFiles() {
		for _, d := range f.Go.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.IsTest() && fn.Recv == nil &&
				strings.HasPrefix(fn.Name.Name, "Test") {
				if names[f.Dir()] == nil {
					names[f.Dir()] = map[string]bool{}
				}
				names[f.Dir()][fn.Name.Name] = true
			}
		}
	}
	return names
}

// startsGoroutines reports whether a file has a go statement, or a call of a method Go, as errgroup.Group and
// sync.WaitGroup have.
func startsGoroutines(f *File) bool {
	starts := false
	ast.Inspect(f.Go, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				starts = true
			}
		}
		return !starts
	})
	return starts
}
