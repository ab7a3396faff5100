package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	_ "github.com/mcompress/mcompress" // go test runs the tests again after a change of a method
	"github.com/mcompress/mcompress/internal/dev/conform"
)

// TestSampleRunsAsRecorded runs the sample of models, each in half of the forms, on the oldest and the newest version
// of ONNX Runtime, and all of them in every runtime under make test-exhaustive: each file loads and is right where the
// committed results have it.
func TestSampleRunsAsRecorded(t *testing.T) {
	conform.Shared(t)
	committed := results(t)
	make, err := newMaker(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	referring := started(t, references())
	tested := sampledRuntimes()
	workers := started(t, tested)
	for i, m := range sampledModels() {
		for _, v := range conform.Part(i, 2, variants()) {
			x, forms, err := prepare(t.Context(), make, m, v)
			if err != nil {
				t.Fatal(err)
			}
			f := committed.find(v.Name, m.Name)
			if f == nil {
				t.Errorf("%s of %s is not in results.json: make compat", v.Name, m.Name)
				continue
			}
			if !slices.Equal(f.Forms, forms) {
				t.Errorf("%s of %s has forms %v, results.json has %v: make compat", v.Name, m.Name, forms, f.Forms)
			}
			x.refer(referring)
			for i, r := range tested {
				now, _ := x.check(workers[i])
				compareCells(t, m.Name, v, r.Name, f.Cells[r.Name], now)
			}
		}
	}
}

// sampledModels are the models of the sample, or all under make test-exhaustive.
func sampledModels() []model {
	return slices.DeleteFunc(models(), func(m model) bool { return !m.Sample && !conform.Exhaustive() })
}

func sampledRuntimes() []runtime {
	if conform.Exhaustive() {
		return runtimes()
	}
	return slices.DeleteFunc(runtimes(), func(r runtime) bool { return r.Name != oldest && r.Name != newest })
}

func compareCells(t *testing.T, model string, v variant, runtime string, want, now *cell) {
	t.Helper()
	name := model + ", " + v.Name + " in " + runtime
	switch {
	case want == nil:
		t.Errorf("%s is not in results.json: make compat", name)
	case v.saturated(want, now):
		t.Logf("%s: products saturate on this CPU", name)
	case now.rank() < want.rank():
		t.Errorf("%s: %s, was %s: %s", name, now.State, want.State, now.Error)
	case now.rank() > want.rank():
		t.Logf("%s: %s, was %s: make compat", name, now.State, want.State)
	}
}

// TestMain reads the metadata of the workers' sources, so that go test runs the tests again after one of them has
// changed.
func TestMain(m *testing.M) {
	for _, pattern := range []string{"*.py", "*.mjs", filepath.Join("adapters", "*.py")} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			os.Stat(name)
		}
	}
	os.Exit(m.Run())
}

// started starts workers. Where an environment is missing it skips the test, or fails it in CI.
func started(t *testing.T, all []runtime) []worker {
	t.Helper()
	workers, err := startAll(all)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { closeAll(workers) })
	return workers
}

func results(t *testing.T) *matrix { return committed(t, allResults) }

func committed(t *testing.T, name string) *matrix {
	t.Helper()
	path, err := resultsPath(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMatrix(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPageIsThatOfTheResults compares docs/compatibility.md with results.json, which is complete and of the pinned
// versions.
func TestPageIsThatOfTheResults(t *testing.T) {
	m, root := results(t), rootFolder(t)
	for _, r := range runtimes() {
		version, err := r.version()
		if err != nil {
			t.Fatal(err)
		}
		if m.Versions[r.Name] != version {
			t.Errorf("results.json has version %q of %s, pinned is %q: make compat", m.Versions[r.Name], r.Name,
				version)
		}
	}
	for _, f := range m.Files {
		if len(f.Cells) != len(runtimes()) {
			t.Errorf("%s of %s has results in %d of %d runtimes: make compat", f.Variant, f.Model, len(f.Cells),
				len(runtimes()))
		}
	}
	written, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page(m, committed(t, memoryResults)) {
		t.Error("docs/compatibility.md is not the page of results.json: make compat")
	}
	slow, err := slowdowns(m)
	if err != nil {
		t.Fatal(err)
	}
	if written, err = os.ReadFile(filepath.Join(root, "pass", "slowdowns.go")); err != nil ||
		string(written) != string(slow) {
		t.Errorf("pass/slowdowns.go is not that of results.json: make compat (%v)", err)
	}
}

// TestEveryFormHasAVariant requires a file with each form of package pass.
func TestEveryFormHasAVariant(t *testing.T) {
	var found []string
	for _, f := range results(t).Files {
		found = append(found, f.Forms...)
	}
	forms := declaredForms(t)
	if len(forms) < 20 {
		t.Fatalf("%d forms in pass/form.go", len(forms))
	}
	for _, form := range forms {
		if !slices.Contains(found, form) {
			t.Errorf("no variant of a model has form %s: extend variants or models, then make compat", form)
		}
	}
}

// declaredForms are the names in the composite literals of type Form in pass/form.go.
func declaredForms(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(rootFolder(t), "pass", "form.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, e := range literal.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok || field.Key.(*ast.Ident).Name != "Name" {
				continue
			}
			name, err := strconv.Unquote(field.Value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return true
	})
	return names
}

func rootFolder(t *testing.T) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
