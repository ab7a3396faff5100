package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Each operator of ONNX and of ONNX Runtime has a line in testdata/references.txt with a test that compares its values
// with a reference: the tests of the onnx package (TestNodeTests), ONNX Runtime, or numbers of the specification. Those
// of domain mcompress, which only the engine writes, are compared with finite differences (internal/engine/grad) or
// with the nodes that they replace.
func TestEveryOperatorHasAReference(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "references.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]bool{} // by folder
	named := map[string]bool{}            // operators
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Errorf("%q: want an operator, the folder of a package and a test", line)
			continue
		}
		operator, folder, test := fields[0], fields[1], fields[2]
		if tests[folder] == nil {
			tests[folder] = testsOf(t, filepath.Join(root, filepath.FromSlash(folder)))
		}
		if !tests[folder][test] {
			t.Errorf("%s: no %s in %s", operator, test, folder)
		}
		named[operator] = true
	}
	rows := map[string]bool{}
	for key := range table() {
		if strings.HasPrefix(key.domain, "mcompress") {
			continue
		}
		name := strings.TrimPrefix(key.domain+"."+key.typ, ".")
		if rows[name] = true; !named[name] {
			t.Errorf("%s has no line in testdata/references.txt: name the test of its values", name)
		}
	}
	for name := range named {
		if !rows[name] {
			t.Errorf("testdata/references.txt: there is no operator %s", name)
		}
	}
}

var testDeclaration = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOf are the names of the tests in a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testDeclaration.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}
