// Command platforms type-checks the module, tests included, for the platforms GOOS/GOARCH that its arguments name,
// without cgo.
//
// It reads the sources, those of the standard library too, and generates no code: compiling for a platform takes ten
// times as long and finds the same errors.
package main

import (
	"errors"
	"fmt"
	"os"
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
	loaded, err := packages.Load(&packages.Config{
		Mode:  mode,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	fmt.Printf("%s: %d packages\n", platform, len(loaded))
	return nil
}
