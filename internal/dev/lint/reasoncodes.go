package lint

import "go/ast"

// codeTables are the files that list the codes of reasons, with their values, descriptions and texts.
var codeTables = []string{"pass/code.go", "pass/codegroups.go", "report/reason.go"}

// unusedCodes finds codes of reasons that no code produces: constants of pass/code.go that only the tables name.
func unusedCodes(t *Tree) []Problem {
	used := map[string]bool{}
	for _, f := range t.goFiles(built, t.inRootModule) {
		if !f.within(codeTables...) {
			addCodes(used, f)
		}
	}
	var found []Problem
	for _, f := range t.goFiles(built) {
		if f.Path != codeTables[0] {
			continue
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && !used[spec.Names[0].Name] {
				found = append(found, t.problem(f, spec.Pos(),
					"no method gives the reason code %s: delete it with its text and description", spec.Names[0].Name))
			}
			return !ok
		})
	}
	return found
}

// addCodes adds the names that f uses of package pass.
func addCodes(used map[string]bool, f *File) {
	ast.Inspect(f.Go, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "pass" {
				used[n.Sel.Name] = true
			}
		case *ast.Ident:
			if f.Dir() == "pass" {
				used[n.Name] = true
			}
		}
		return true
	})
}
