package lint

import (
	"go/ast"
	"go/token"
	"slices"
)

// changedGlobals finds assignments to package-level variables. Options are bound per
// use, so that two runs in one process cannot disturb each other.
func changedGlobals(t *Tree) []Problem {
	var found []Problem
	globals := packageVariables(t)
	for _, f := range t.goFiles(built) {
		names := globals[f.Dir()]
		ast.Inspect(f.Go, func(n ast.Node) bool {
			for _, target := range assigned(n) {
				if id := root(target); id != nil && isGlobal(id, names) {
					found = append(found, t.problem(f, id.Pos(),
						"assigns to the package's variable %s: pass it in options", id.Name))
				}
			}
			return true
		})
	}
	return found
}

// packageVariables returns the declarations of package-level variables by folder and
// name: several where build tags choose among files.
func packageVariables(t *Tree) map[string]map[string][]*ast.ValueSpec {
	byFolder := map[string]map[string][]*ast.ValueSpec{}
	for _, f := range t.goFiles(built) {
		if byFolder[f.Dir()] == nil {
			byFolder[f.Dir()] = map[string][]*ast.ValueSpec{}
		}
		for _, d := range f.Go.Decls {
			addVariables(byFolder[f.Dir()], d)
		}
	}
	return byFolder
}

func addVariables(names map[string][]*ast.ValueSpec, d ast.Decl) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.VAR {
		return
	}
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		for _, id := range spec.Names {
			names[id.Name] = append(names[id.Name], spec)
		}
	}
}

func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	}
	return nil
}

// root is the variable that an assignment reaches: x of x, x[i], x.f and *x.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return nil
}

// isGlobal reports whether id is one of the package's variables and not a local of the
// same name. The parser resolves names within a file: what it leaves open is another
// file's, so a variable of the package.
func isGlobal(id *ast.Ident, names map[string][]*ast.ValueSpec) bool {
	specs, known := names[id.Name]
	if !known || id.Obj == nil {
		return known
	}
	spec, ok := id.Obj.Decl.(*ast.ValueSpec)
	return ok && slices.Contains(specs, spec)
}
