package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// walks are the ways of a weight, of a gate and of a sample through the code: a function calls those that are indented below it, in this order. A line is a
// package from the root of the module, and a function or method of it.
var walks = map[string]string{
	"weight": `
. Request.RunAll
  . run.all
    . run.outcome
      . run.one
        . run.compressed
          internal/job Run
            internal/job Options.attempt
              internal/job run.openSource: the source, whose weights stay in the file
                onnx OpenContext
              internal/job run.runPasses: methods replace weights by recipes
                pass Run
              internal/job run.planOutput: sizes and offsets of all weights
                onnx Layout
              internal/job run.stageFiles
                onnx Plan.Fill: recipes write their outputs into the gaps
                  onnx Plan.fill
                internal/job run.checkOutput: the written weights are read back
                  internal/job run.checkWritten
                    report CheckWritten
              internal/job run.publish
                internal/atomicfile Set.Publish
`,
	"gate": `
cmd/mcompress requestFlags.run
  cmd/mcompress requestFlags.request: flags and the policy
  . Request.RunAll
    . Request.Check: what gates need
      . Request.checkGates
    . run.all
      . run.outcome
        . run.one
          . run.compressed
            internal/job Run
              internal/job Options.attempt
                internal/job run.evaluateGates: gates on files, before anything is written
                  report Build
                    report evaluate
                      report rule.evaluate
                internal/job run.stageFiles
                  internal/job run.checkOutput: gates on runs, before anything is published
                    internal/job run.evaluateGates
  cmd/mcompress outcomePrinter.end
    cmd/mcompress outcomeCode
`,
	"sample": `
. Request.RunAll
  . run.all
    . run.prepare
      . run.withData: samples of steps
      . Request.verification
        . Request.dataOptions
    . run.outcome
      . run.one
        . run.compressed
          internal/job Run
            internal/job Options.attempt
              internal/job run.stageFiles
                internal/job run.checkOutput
                  internal/job run.verifyOutput
                    internal/job Verification.compare
                      internal/job Verification.compareWithin
                        internal/job Data.Open
                          internal/dataset Open
                        internal/job Verification.compareSessions
                          internal/verify Compare
                            internal/verify newComparison
                            internal/verify InOrder: runs of both models
`,
}

// TestWalksAreCalls generates the pictures of walks in docs/architecture.md, and requires each function of a walk to use the next one.
func TestWalksAreCalls(t *testing.T) {
	path := filepath.Join(root(t), "docs", "architecture.md")
	page := read(t, path)
	actual := page
	packages := map[string]map[string]station{}
	for _, name := range []string{"weight", "gate", "sample"} {
		actual = between(t, actual, "walk of a "+name, picture(t, packages, walks[name]))
	}
	settle(t, path, page, actual)
}

// A station is the file and the body of a function.
type station struct {
	file string
	body map[string]bool // names that it uses
}

// picture is the walk with files.
func picture(t *testing.T, packages map[string]map[string]station, walk string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("```text\n")
	var above []station
	for line := range strings.SplitSeq(strings.TrimSpace(walk), "\n") {
		text := strings.TrimLeft(line, " ")
		depth := (len(line) - len(text)) / 2
		call, note, _ := strings.Cut(text, ": ")
		pkg, name, _ := strings.Cut(call, " ")
		if packages[pkg] == nil {
			packages[pkg] = functions(t, filepath.Join(root(t), filepath.FromSlash(pkg)))
		}
		f, ok := packages[pkg][name]
		if !ok {
			t.Fatalf("package %s has no function %s", pkg, name)
		}
		above = append(above[:depth], f)
		if last := name[strings.LastIndexByte(name, '.')+1:]; depth > 0 && !above[depth-1].body[last] {
			t.Errorf("%s: %s does not use %s", above[depth-1].file, walk, last)
		}
		shown := name
		if pkg != "." {
			shown = filepath.Base(pkg) + "." + name
		}
		line = strings.Repeat("  ", depth) + shown
		fmt.Fprintf(&b, "%-46s %-30s %s", line, filepath.ToSlash(filepath.Join(pkg, f.file)), note)
		text = strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(text + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// functions are those of a package by name, methods as Type.Method.
func functions(t *testing.T, dir string) map[string]station {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]station{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				continue
			}
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if id, ok := of.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			uses := map[string]bool{}
			ast.Inspect(d.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					uses[id.Name] = true
				}
				return true
			})
			found[name] = station{e.Name(), uses}
		}
	}
	return found
}
