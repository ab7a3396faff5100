package lint

import (
	"go/ast"
	"slices"
	"strings"
)

// unusedExports finds exported functions of internal packages whose names occur in no other folder, tests included.
// Types and constants are part of signatures and sets; methods implement interfaces.
func unusedExports(t *Tree) []Problem {
	folders := map[string]map[string]bool{} // by name, the folders whose files use it
	for _, f := range t.goFiles() {
		ast.Inspect(f.Go, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				if folders[id.Name] == nil {
					folders[id.Name] = map[string]bool{}
				}
				folders[id.Name][f.Dir()+f.Go.Name.Name] = true // a package's external tests are another package
			}
			return true
		})
	}
	var found []Problem
	for _, f := range t.goFiles(built, t.inRootModule) {
		if !slices.Contains(strings.Split(f.Dir(), "/"), "internal") {
			continue
		}
		for _, d := range f.Go.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.IsExported() && len(folders[fn.Name.Name]) == 1 {
				found = append(found, t.problem(f, fn.Pos(), "no other package uses %s: unexport or delete it",
					fn.Name.Name))
			}
		}
	}
	return found
}
