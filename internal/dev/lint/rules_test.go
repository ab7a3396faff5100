package lint

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A sample is a small tree: text by path. bad breaks the rule, once, and the problem includes want; good does not.
type sample struct {
	rule      string
	bad, good map[string]string
	want      string
}

const documented = "// Package p is a sample.\npackage p\n"

func samples() []sample {
	return []sample{
		{"gofmt", one("ir/a.go", "package p\nfunc  f() {}\n"), one("ir/a.go", "package p\n\nfunc f() {}\n"),
			"run gofmt"},
		{"arrows", imports("ir/a.go", Module+"/onnx"), imports("onnx/a.go", Module+"/ir"),
			"ir imports onnx: its arrows go to nothing else"},
		{"arrows", imports("ir/opset/a.go", Module+"/pass"), imports("ir/opset/a.go", Module+"/ir"), "ir imports pass"},
		{"arrows", imports("quantize/a.go", Module+"/prune"), imports("quantize/a.go", Module+"/pass"),
			"quantize imports prune"},
		{"arrows", imports("sparse/a.go", Module+"/report"), imports("cmd/mcompress/a.go", Module+"/report"),
			"sparse imports report"},
		{"arrows", imports("internal/kernel/a.go", "golang.org/x/sync/errgroup"),
			imports("internal/kernel/a.go", "golang.org/x/sys/cpu"), "standard library and golang.org/x/sys/cpu"},
		{"arrows", imports("internal/dev/conform/a.go", Module+"/onnx"),
			imports("internal/dev/conform/a_test.go", Module+"/onnx"), "internal/dev/conform imports onnx"},
		{"banned imports", imports("ir/a_test.go", "io/ioutil"), imports("ir/a.go", "io"), "use io and os"},
		{"banned imports", imports("prune/a.go", "math/rand"), imports("prune/a.go", "math/rand/v2"), "math/rand/v2"},
		{"banned imports", imports("pass/a.go", "google.golang.org/protobuf/proto"),
			imports("onnx/a.go", "google.golang.org/protobuf/proto"), "only onnx handles protobuf"},
		{"banned imports", imports("onnx/a_test.go", "github.com/owulveryck/onnx-go/backend/simple"),
			imports("internal/dev/interop/a_test.go", "github.com/owulveryck/onnx-go"), "interop check"},
		{"banned calls", one("report/a.go", "package p\n\nimport \"time\"\n\nvar t = time.Now()\n"),
			one("report/environment.go", "package p\n\nimport \"time\"\n\nvar t = time.Now()\n"),
			"report/environment.go"},
		{"banned calls", one("pass/a.go", "package p\n\nimport clock \"time\"\n\nvar t = clock.Now()\n"),
			one("pass/a.go", "package p\n\nvar time struct{ Now int }\nvar t = time.Now\n"), "time.Now"},
		{"banned calls", one("onnx/a.go", "package p\n\nimport \"syscall\"\n\nvar m = syscall.Mmap\n"),
			one("onnx/a.go", "package p\n\nimport \"syscall\"\n\nvar m = syscall.Read\n"), "ReadAt"},
		{"banned calls", one("onnx/a.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n"),
			one("cmd/a.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n"), "io.Writer"},
		{"decoders", one("registry/a.go", "package p\n\nimport \"encoding/json\"\n\nvar f = json.Unmarshal\n"),
			one("internal/child/a.go", "package p\n\nimport \"encoding/json\"\n\nvar f = json.Unmarshal\n"),
			"internal/bounded"},
		{"decoders", one("pass/a.go", "package p\n\nimport \"github.com/goccy/go-yaml\"\n\nvar f = yaml.Unmarshal\n"),
			one("pass/a_test.go", "package p\n\nimport \"github.com/goccy/go-yaml\"\n\nvar f = yaml.Unmarshal\n"),
			"internal/bounded"},
		{"init", one("ir/a.go", "package p\n\nfunc init() {}\n"),
			one("ir/a.go", "package p\n\ntype t int\n\nfunc (t) init() {}\n"), "init runs implicitly"},
		{"globals", one("ir/a.go", "package p\n\nvar n int\n\nfunc f() { n++ }\n"),
			one("ir/a.go", "package p\n\nvar n = 1\n\nfunc f() { n := 2; n++ }\n"), "variable n"},
		{"globals", map[string]string{"ir/a.go": "package p\n\nvar m = map[int]int{}\n",
			"ir/b.go": "package p\n\nfunc f() { m[1] = 2 }\n"},
			map[string]string{"ir/a.go": "package p\n\nvar m = map[int]int{}\n",
				"onnx/b.go": "package p\n\nfunc f(m []int) { m[1] = 2 }\n"}, "variable m"},
		{"operators", one("pass/a.go", "package p\n\nfunc f(n node) bool { return n.Op.Type == \"Relu\" }\n"),
			one("ir/opset/a.go", "package p\n\nfunc f(n node) bool { return n.Op.Type == \"Relu\" }\n"),
			"column of ir/operator"},
		{"operators", one("pass/a.go", "package p\n\nfunc f(n node) bool { return n.Op.Is(\"Gemm\") || !n.Op.Is(\"MatMul\") }\n"), one("pass/a.go", "package p\n\nfunc f(n, m node) bool { return n.Op.Is(\"Gemm\") || m.Op.Is(\"MatMul\") }\n"), "column of ir/operator"},
		{"operators", one("pass/a.go", "package p\n\nvar t = map[string]bool{}\n\nfunc f(n node) bool { return t[n.Op.Type] }\n"), one("pass/a.go", "package p\n\ntype r func()\n\nvar t = map[string]r{}\n\nfunc f(n node) r { return t[n.Op.Type] }\n"), "column of ir/operator"},
		{"operators", one("pass/a.go", "package p\n\nfunc f(n node) {\n\tswitch n.Op.Type {\n\tcase \"Relu\":\n\t}\n}\n"), one("pass/a.go", "package p\n\nfunc f(n node) {\n\tswitch {\n\tcase n.Op.Is(\"Relu\"):\n\t}\n}\n"), "column of ir/operator"},
		{"operators", one("pass/a.go", "package p\n\nimport \"slices\"\n\nfunc f(n node) bool { return slices.Contains(list, n.Op.Type) }\n"), one("pass/a.go", "package p\n\nimport \"slices\"\n\nfunc f(n node) bool { return slices.Contains(list, n.Name) }\n"), "column of ir/operator"},
		{"errors", one("ir/a.go", "package p\n\nimport \"errors\"\n\nvar e = errors.New(\"failed to read\")\n"),
			one("ir/a.go", "package p\n\nimport \"errors\"\n\nvar e = errors.New(\"no graph\")\n"), "state the cause"},
		{"errors", one("ir/a.go", "package p\n\nimport \"fmt\"\n\nvar e = fmt.Errorf(\"no graph.\")\n"),
			one("ir/a_test.go", "package p\n\nimport \"fmt\"\n\nvar e = fmt.Errorf(\"no graph.\")\n"), "full stop"},
		{"exports", one("internal/p/a.go", "package p\n\nfunc F() {}\n"),
			map[string]string{"internal/p/a.go": "package p\n\nfunc F() {}\n",
				"ir/a.go": "package q\n\nvar x = p.F\n"}, "no other package uses F"},
		{"reason codes", reasonCode("report/reason.go"), reasonCode("prune/a.go"),
			"no method gives the reason code Small"},
		{"race", racing("TestOld", "TestNew"), racing("TestNew", "TestNew"), "no test TestOld in ir"},
		{"race", one("ir/a.go", "package p\n\nfunc f() { go f() }\n"),
			one("ir/a.go", "package p\n\nfunc f() { f() }\n"), "add tests of ir to .ci/race-tests"},
		{"race", one("ir/a.go", "package p\n\nfunc f(g group) { g.Go(nil) }\n"),
			one("internal/dev/p/a.go", "package p\n\nfunc f(g group) { g.Go(nil) }\n"),
			"add tests of ir to .ci/race-tests"},
		{"stubs", one("README.md", "a\nTO"+"DO: write\n"), one("README.md", "to do\n"), "do it now"},
		{"machine paths", one("ir/a.go", "package p\n\nconst c = \"/tm"+"p/x\"\n"),
			one("ir/a_test.go", "package p\n\nconst c = \"/tm"+"p/x\"\n"), "path of one machine"},
		{"machine paths", one("Makefile", "x:\n\t/wor"+"k/tool\n"), one("Makefile", "x:\n\t./wor"+"k/tool\n"),
			"path of one machine"},
		{"hosts", one(".ci/run", "curl https://pypi."+"org/x\n"), one(".ci/run", "pip install x\n"),
			"leave the registry"},
		{"package doc", one("ir/a.go", "package p\n"),
			map[string]string{"ir/a.go": "package p\n", "ir/doc.go": documented}, "describe in doc.go"},
		{"examples", one("ir/a.go", "package p\n\nfunc F() {}\n"),
			map[string]string{"ir/a.go": "package p\n\nfunc F() {}\n",
				"ir/a_test.go": "package p\n\nfunc ExampleF() {}\n"}, "no Example"},
		{"examples", one("ir/a.go", "package p\n\nconst C = 1\n"),
			one("internal/p/a.go", "package p\n\nconst C = 1\n"), "no Example"},
	}
}

func one(path, text string) map[string]string { return map[string]string{path: text} }

// reasonCode is a tree in which the file uses the only code of reasons.
func reasonCode(user string) map[string]string {
	return map[string]string{
		"pass/code.go": "package pass\n\ntype Code string\n\nconst Small Code = \"small\"\n",
		user:           "package p\n\nvar code = pass.Small\n",
	}
}

// racing is a tree in which the list of the race detector has one test of a package that starts goroutines, which has
// another or the same.
func racing(listed, there string) map[string]string {
	return map[string]string{
		raceList:       "# tests\nir " + listed + "\n",
		"ir/a.go":      "package p\n\nfunc f() { go f() }\n",
		"ir/a_test.go": "package p\n\nfunc " + there + "() {}\n",
	}
}

func imports(path, target string) map[string]string {
	return one(path, "package p\n\nimport _ \""+target+"\"\n")
}

func parse(t *testing.T, texts map[string]string) *Tree {
	t.Helper()
	files := fstest.MapFS{}
	for path, text := range texts {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Read(files, slices.Sorted(maps.Keys(texts)))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestEachRuleFiresOnItsBadSampleOnly(t *testing.T) {
	checks := map[string]func(*Tree) []Problem{}
	for _, r := range Rules() {
		checks[r.Name] = r.Check
	}
	for _, s := range samples() {
		found := checks[s.rule](parse(t, s.bad))
		if len(found) != 1 || !strings.Contains(found[0].String(), s.want) {
			t.Errorf("%s: the bad sample %v gives %v, want one problem with %q", s.rule, s.bad, found, s.want)
		}
		if found := checks[s.rule](parse(t, s.good)); len(found) != 0 {
			t.Errorf("%s: the good sample %v gives %v", s.rule, s.good, found)
		}
	}
}

func TestEachRuleHasASample(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range samples() {
		covered[s.rule] = true
	}
	for _, r := range Rules() {
		if !covered[r.Name] {
			t.Errorf("no sample for %s", r.Name)
		}
	}
}

func TestNestedModulesAreLeftOut(t *testing.T) {
	tree := parse(t, map[string]string{
		"internal/kernel/gen/go.mod":  "module gen\n",
		"internal/kernel/gen/main.go": "package main\n\nimport _ \"" + Module + "/onnx\"\n",
	})
	for _, r := range Rules() {
		if r.Name == "package doc" || r.Name == "arrows" {
			for _, p := range r.Check(tree) {
				t.Errorf("%s: %s", r.Name, p)
			}
		}
	}
}

func TestProblemsNameFileAndLine(t *testing.T) {
	tree := parse(t, one("README.md", "a\nTO"+"DO: write\n"))
	if got := stubs(tree)[0].String(); !strings.HasPrefix(got, "README.md:2: ") {
		t.Errorf("got %q", got)
	}
}
