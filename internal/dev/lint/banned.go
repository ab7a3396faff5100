package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// A ban is an import path, or a call as "path.Name", with the places where it is right
// and what to use elsewhere.
type ban struct {
	what    string
	except  []string
	instead string
	tests   bool // holds in tests too
}

func importBans() []ban {
	return []ban{
		{"io/ioutil", nil, "use io and os", true},
		{"math/rand", nil, "use math/rand/v2, whose generators are seeded explicitly", true},
		{"golang.org/x/exp/mmap", nil, "read payloads with ReadAt: a truncated file is then an error, not a SIGBUS",
			true},
		{"github.com/edsrzf/mmap-go", nil, "read payloads with ReadAt: a truncated file is then an error, not a SIGBUS", true},
		{"github.com/stretchr/testify", nil, "compare got and want in the test", true},
		{"github.com/owulveryck/onnx-go", []string{"internal/dev/interop"},
			"it is an interop check, for the tests of internal/dev/interop", true},
		{"gorgonia.org", []string{"internal/dev/interop"},
			"it comes with onnx-go, for the tests of internal/dev/interop", true},
		{"github.com/ebitengine/purego", []string{"internal/engine/ort"},
			"only internal/engine/ort calls C: use its API", true},
		{"google.golang.org/protobuf", []string{"onnx"}, "only onnx handles protobuf: use its API", false},
		{"github.com/klauspost/compress", []string{"internal/pack"}, "only internal/pack codes entropy: use its API",
			true},
		{"oras.land/oras-go", []string{"registry/oci"},
			"only registry/oci is a client of OCI registries: use package registry", true},
		{"github.com/urfave/cli", []string{"cmd"}, "flags belong to cmd: take options", false},
		{"github.com/vbauerster/mpb", []string{"cmd"}, "progress belongs to cmd: take a callback", false},
		{"log", []string{"cmd"}, "return an error, or a row of the ledger", false},
		{"log/slog", []string{"cmd"}, "return an error, or a row of the ledger", false},
	}
}

func callBans() []ban {
	clock := []string{"cmd", "internal", "report/environment.go", "registry/mlflow/push.go", "distill/progress.go"}
	output := []string{"cmd", "internal", "fixtures"}
	return []ban{
		{"time.Now", clock, "outputs depend on input and options only: take the time in cmd or report/environment.go",
			false},
		{"time.Since", clock, "outputs depend on input and options only: take the time in cmd or report/environment.go", false},
		{"syscall.Mmap", []string{"internal/kernel/halfguard_test.go", "internal/weightcache/map_unix.go"},
			"read payloads with ReadAt: a truncated file is then an error, not a SIGBUS", true},
		{"golang.org/x/sys/unix.Mmap", nil, "read payloads with ReadAt: a truncated file is then an error, not a SIGBUS", true},
		{"os.Rename", []string{"internal/atomicfile", "internal/dev"}, "write files with internal/atomicfile", false},
		{"os.WriteFile", []string{"internal/dev", "packaging", "distill/checkpoint.go"},
			"write files with internal/atomicfile", false},
		{"os.MkdirTemp", []string{"internal/atomicfile", "internal/dev", "packaging"},
			"make temporary folders with internal/atomicfile", false},
		{"path/filepath.FromSlash", []string{
			"internal/untrusted", "internal/dev", "packaging",
			// references and URLs that the user gave
			"cmd", "internal/naming", "internal/remote",
			// constants
			"internal/engine/ort/find.go",
			// names that this program listed
			"internal/job/recipe.go", "internal/sign/files.go", "signature.go", "registry/hub.go",
			// names that CheckNames has accepted
			"registry/pull.go",
			// names in an os.Root
			"internal/dataset/archive.go", "onnx",
		},
			"a name from elsewhere becomes a path with internal/untrusted", false},
		{"path/filepath.Localize", []string{"internal/untrusted", "internal/dev"},
			"a name from elsewhere becomes a path with internal/untrusted", false},
		{"os.Exit", []string{"cmd", "packaging", "fixtures", "internal"},
			"return an error: cmd maps it to an exit code", false},
		{"fmt.Print", output, "write to an io.Writer that the caller gives", false},
		{"fmt.Printf", output, "write to an io.Writer that the caller gives", false},
		{"fmt.Println", output, "write to an io.Writer that the caller gives", false},
		{"os.Chdir", []string{"internal/dev/cluster"},
			"use paths, or t.Chdir in a test: the working folder belongs to the whole process", true},
	}
}

func bannedImports(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.goFiles() {
		for _, spec := range f.Go.Imports {
			for _, b := range importBans() {
				target := importPath(spec)
				if (target == b.what || strings.HasPrefix(target, b.what+"/") && !versioned(b.what)) && b.holds(f) {
					found = append(found, t.problem(f, spec.Pos(), "imports %s: %s", target, b.instead))
				}
			}
		}
	}
	return found
}

// versioned reports whether longer paths with this prefix are other packages:
// math/rand/v2 is what to use instead of math/rand, log/slog has a row of its own.
func versioned(what string) bool { return what == "math/rand" || what == "log" }

func bannedCalls(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.goFiles() {
		imports := importNames(f.Go)
		ast.Inspect(f.Go, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			for _, b := range callBans() {
				if qualified(s, imports) == b.what && b.holds(f) {
					found = append(found, t.problem(f, s.Pos(), "uses %s: %s", b.what, b.instead))
				}
			}
			return true
		})
	}
	return found
}

func (b ban) holds(f *File) bool {
	return (b.tests || !f.IsTest()) && !f.within(b.except...)
}

// importNames maps the local name of an imported package to its path.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		target := importPath(spec)
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

// qualified is "path.Name" of a selector on a package, "" for other selectors.
func qualified(s *ast.SelectorExpr, imports map[string]string) string {
	x, ok := s.X.(*ast.Ident)
	if !ok || x.Obj != nil { // an Obj is a variable of the file that has the package's name
		return ""
	}
	target, ok := imports[x.Name]
	if !ok {
		return ""
	}
	return target + "." + s.Sel.Name
}

// registering are the packages that are imported for what they register, as image/png is.
var registering = map[string]bool{"s3": true, "registry/oci": true, "registry/mlflow": true}

func initFunctions(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.goFiles() {
		if registering[f.Dir()] {
			continue
		}
		for _, d := range f.Go.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !f.IsGenerated() {
				found = append(found, t.problem(f, fn.Pos(),
					"init runs implicitly: call a function where its result is used"))
			}
		}
	}
	return found
}

// errorTexts finds errors whose text is redundant or more than one line.
func errorTexts(t *Tree) []Problem {
	var found []Problem
	for _, f := range t.goFiles(built) {
		imports := importNames(f.Go)
		ast.Inspect(f.Go, func(n ast.Node) bool {
			text, at := errorText(n, imports)
			if strings.Contains(text, "failed to") || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
				found = append(found, t.problem(f, at,
					"error %q: state the cause, in one line, without \"failed to\" and full stop", text))
			}
			return true
		})
	}
	return found
}

// errorText is the literal text of a call that makes an error.
func errorText(n ast.Node, imports map[string]string) (string, token.Pos) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", token.NoPos
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", token.NoPos
	}
	maker := qualified(s, imports)
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || maker != "fmt.Errorf" && maker != "errors.New" {
		return "", token.NoPos
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		panic(err) // the parser accepted it
	}
	return text, literal.Pos()
}
