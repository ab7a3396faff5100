// Command platforms type-checks the module, tests included, for the platforms GOOS/GOARCH that its arguments name,
// without cgo.
//
// It reads the sources, those of the standard library too, and generates no code: compiling for a platform takes ten
// times as long and finds the same errors.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mode loads dependencies from source. Syntax trees are not kept.
const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes

func main() {
	code := 0
	for _, platform := range os.Args[1:] {
		if err := check(platform); err != nil {
			fmt.Fprintf(os.Stderr, "platforms: %s: %v\n", platform, err)
			code = 1
		}
	}
	os.Exit(code)
}

// check prints the type errors of all packages on a platform.
func check(platform string) error {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return errors.New("not of the form GOOS/GOARCH")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:      mode,
		Env:       append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0"),
		Tests:     true,
		ParseFile: parserOf(root),
	}, "./...")
	if err != nil {
		return err
	}
	n := 0
	for _, p := range loaded {
		for _, e := range p.Errors {
			fmt.Fprintln(os.Stderr, e)
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	fmt.Printf("%s: %d packages\n", platform, len(loaded))
	return nil
}

// parserOf parses files. Those of dependencies lose the bodies of their functions, which take most of the time to
// check: packages import declarations only. The main packages of tests, which Go's cache has, are no .go files.
func parserOf(root string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	return func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
		f, err := parser.ParseFile(set, name, text, parser.AllErrors|parser.SkipObjectResolution)
		if f == nil || filepath.Ext(name) != ".go" || strings.HasPrefix(name, root+string(filepath.Separator)) {
			return f, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				fn.Body = nil
			}
		}
		return f, err
	}
}
