package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the tests compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mcompress": main})
}

// params gives scripts the fixtures: $FIXTURES, and "fixture NAME..." that copies some.
func params(t *testing.T) testscript.Params {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		RequireExplicitExec: false,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fixture": func(ts *testscript.TestScript, _ bool, names []string) {
				for _, name := range names {
					data, err := os.ReadFile(filepath.Join(fixtures, name))
					ts.Check(err)
					ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o644))
				}
			},
			"exits": exits,
		},
	}
}

// exits runs mcompress and wants the given exit code: exits CODE ARGUMENTS...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("mcompress", args[1:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

func TestScripts(t *testing.T) {
	p := params(t)
	p.Dir = "testdata/script"
	p.UpdateScripts = *update
	testscript.Run(t, p)
}

// example is a block of shell lines in the README.
var example = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestExamplesOfREADME runs every mcompress line of the README's examples in a folder that
// holds the fixtures as the repository does.
func TestExamplesOfREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Skip("no README.md yet")
	}
	var script strings.Builder
	for _, block := range example.FindAllStringSubmatch(string(readme), -1) {
		script.WriteString(commands(block[1]))
	}
	if script.Len() == 0 {
		t.Fatal("README.md has no example that runs mcompress")
	}
	file := filepath.Join(t.TempDir(), "readme.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	p := params(t)
	p.Files = []string{file}
	inner := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := inner(e); err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(e.WorkDir, "fixtures"), os.DirFS("../../fixtures"))
	}
	testscript.Run(t, p)
}

// commands turns a README's shell lines into script lines: those that run mcompress, by
// its name or by go run.
func commands(block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		line = strings.Replace(line, "go run ./cmd/mcompress", "mcompress", 1)
		if strings.HasPrefix(line, "mcompress ") {
			b.WriteString("exec " + line + "\n")
		}
	}
	return b.String()
}
