package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// call runs the program inside the test.
func call(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), append([]string{"mcompress"}, args...), &out, &err)
	return code, out.String(), err.String()
}

func TestHelp(t *testing.T) {
	for _, name := range append(commandNames(), "mcompress") {
		t.Run(name, func(t *testing.T) {
			args := []string{name, "--help"}
			if name == "mcompress" {
				args = args[1:]
			}
			code, stdout, stderr := call(args...)
			if code != exitDone || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			golden(t, filepath.Join("testdata", "help", name+".txt"), stdout)
		})
	}
}

// The help of a method lists its options alone, each once, with its defaults, and that of a command fits two screens.
func TestHelpOfMethods(t *testing.T) {
	for _, m := range methods {
		choose := map[string]string{"quantize": "--method", "prune": "--method", "sparse": "--format"}[m.Command]
		if choose == "" {
			continue
		}
		code, stdout, _ := call(m.Command, choose, m.Name, "--help")
		if code != exitDone {
			t.Fatalf("%s: exit code %d", m.Name, code)
		}
		own := pass.Flags(m)
		seen := map[string]int{}
		for line := range strings.Lines(stdout) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--"); ok {
				name, _, _ = strings.Cut(name, " ")
				seen[name]++
				if own.Lookup(name) == nil {
					t.Errorf("%s: help lists --%s", m.Name, name)
				}
			}
		}
		own.VisitAll(func(f *flag.Flag) {
			if seen[f.Name] != 1 {
				t.Errorf("%s: help lists --%s %d times", m.Name, f.Name, seen[f.Name])
			}
		})
	}
	for _, command := range []string{"quantize", "prune", "sparse"} {
		if _, stdout, _ := call(command, "--help"); strings.Count(stdout, "\n") > 130 {
			t.Errorf("%s: help has %d lines", command, strings.Count(stdout, "\n"))
		}
	}
}

// golden compares got with a file, or writes the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is outdated (go test ./cmd/mcompress -update):\n%s", path, diff)
	}
}

// TestOptionsOfMethodsAgree holds what one flag for several methods takes for granted.
func TestOptionsOfMethodsAgree(t *testing.T) {
	type key struct{ command, option string }
	first := map[key]*flag.Flag{}
	for _, m := range methods {
		pass.Flags(m).VisitAll(func(f *flag.Flag) {
			if typ := fmt.Sprintf("%T", f.Value); strings.HasPrefix(typ, "flag.") &&
				strings.Contains(strings.ToLower(typ), "func") {
				t.Errorf("%s: --%s does not say its value: recipes in reports would lack it", m.Name, f.Name)
			}
			k := key{m.Command, f.Name}
			if first[k] == nil {
				first[k] = f
				return
			}
			if mcli.IsBool(f) != mcli.IsBool(first[k]) {
				t.Errorf("%s: --%s takes a value in one method, and none in another", m.Name, f.Name)
			}
		})
	}
}

// TestFlagsAreDeclaredOnce builds the flag set of each command, which panics if a method declares a flag that the
// command or the program has already.
func TestFlagsAreDeclaredOnce(t *testing.T) {
	app := newTool(nil, nil).app()
	for _, c := range app.Commands {
		flagSet(app.Flags, c.Flags)
	}
}

func TestMethodsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range methods {
		if seen[m.Name] || m.Name == "" || strings.ToLower(m.Name) != m.Name {
			t.Errorf("method %q: names are unique and lower case", m.Name)
		}
		seen[m.Name] = true
		if m.Doc == "" || m.Command == "" {
			t.Errorf("method %q has no doc or no command", m.Name)
		}
	}
}
