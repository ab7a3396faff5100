package lint

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// A folder is the Go package of one folder, without and with its tests.
type folder struct {
	built, tests []*File
}

func (t *Tree) folders() map[string]*folder {
	folders := map[string]*folder{}
	for _, f := range t.goFiles() {
		if strings.Contains(f.Path, "testdata/") {
			continue
		}
		if folders[f.Dir()] == nil {
			folders[f.Dir()] = &folder{}
		}
		d := folders[f.Dir()]
		if f.IsTest() {
			d.tests = append(d.tests, f)
		} else {
			d.built = append(d.built, f)
		}
	}
	return folders
}

func undocumentedPackages(t *Tree) []Problem {
	return t.eachFolder(func(d *folder) string {
		documented := func(f *File) bool { return f.Go.Doc != nil }
		if len(d.built) == 0 || slices.ContainsFunc(d.built, documented) {
			return ""
		}
		return "package without a comment: describe in doc.go its purpose and what it must not depend on"
	})
}

// missingExamples requires an example of each package that others can import.
func missingExamples(t *Tree) []Problem {
	return t.eachFolder(func(d *folder) string {
		if !isPublic(d) || slices.ContainsFunc(d.tests, hasExample) {
			return ""
		}
		return "exported names and no Example: add example_test.go, which godoc shows and go test runs"
	})
}

func isPublic(d *folder) bool {
	for _, f := range d.built {
		if f.Go.Name.Name == "main" || strings.HasPrefix(f.Path, "internal/") ||
			strings.Contains(f.Path, "/internal/") {
			return false
		}
	}
	return slices.ContainsFunc(d.built, func(f *File) bool { return slices.ContainsFunc(f.Go.Decls, isExported) })
}

func isExported(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.IsExported()
	case *ast.GenDecl:
		return slices.ContainsFunc(d.Specs, isExportedSpec)
	}
	return false
}

func isExportedSpec(s ast.Spec) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.IsExported()
	case *ast.ValueSpec:
		return slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
	}
	return false
}

func hasExample(f *File) bool {
	return slices.ContainsFunc(f.Go.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example")
	})
}

// eachFolder collects the problems of all packages of the root module, in order.
func (t *Tree) eachFolder(why func(*folder) string) []Problem {
	var found []Problem
	folders := t.folders()
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		d := folders[dir]
		first := slices.Concat(d.built, d.tests)[0]
		if !t.inRootModule(first) {
			continue
		}
		if text := why(d); text != "" {
			found = append(found, Problem{dir, 0, text})
		}
	}
	return found
}
