package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// maxMethods is the number of methods of the largest type; a type with more has several duties.
const maxMethods = 35

func largeTypes(t *Tree) []Problem {
	counts, files := map[string]int{}, map[string]*File{}
	for _, f := range t.goFiles(built, t.inRootModule) {
		for _, d := range f.Go.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				name := f.Dir() + "." + receiver(fn.Recv.List[0].Type)
				counts[name]++
				files[name] = f
			}
		}
	}
	var found []Problem
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > maxMethods {
			found = append(found, Problem{files[name].Dir(), 0, fmt.Sprintf("type %s has %d methods: split it by duties, %d are the limit", name[strings.LastIndex(name, ".")+1:], n, maxMethods)})
		}
	}
	return found
}

// receiver is the name of a receiver's type, without pointer and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
