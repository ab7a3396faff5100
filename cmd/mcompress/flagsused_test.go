package main

import (
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/pass"
)

// Each flag of a command is used by a script or a test: one that nothing sets can stop working without a failure.
func TestFlagsAreUsed(t *testing.T) {
	flags, options := usedFlags(t)
	for _, m := range methods {
		pass.Flags(m).VisitAll(func(f *flag.Flag) {
			if options[f.Name] {
				flags[f.Name] = true
			}
		})
	}
	app := newTool(nil, nil).app()
	missing := map[string][]string{} // the commands by flag
	for _, c := range append(app.Commands, &cli.Command{Name: "mcompress", Flags: app.Flags}) {
		for _, f := range c.Flags {
			if !slices.ContainsFunc(f.Names(), func(name string) bool { return flags[name] }) {
				missing[f.Names()[0]] = append(missing[f.Names()[0]], c.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no script and no test uses --%s of %s", name, strings.Join(missing[name], ", "))
	}
}

var (
	flagWord = regexp.MustCompile(`(?:--|[ "]-)([a-z][a-z0-9-]*)`)
	// of variants, such as "block=64" and "symmetric"
	optionWord = regexp.MustCompile(`["\x60 ]([a-z][a-z0-9-]*)["\x60=]`)
)

// usedFlags are the names of flags in scripts and tests, and those that options of methods have in the tests of their
// packages.
func usedFlags(t *testing.T) (flags, options map[string]bool) {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	names, err := conform.Tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	flags, options = map[string]bool{}, map[string]bool{}
	for _, name := range names {
		script, test := strings.HasSuffix(name, ".txtar"), strings.HasSuffix(name, "_test.go")
		if !script && !test || path.Base(name) == "help_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flagWord.FindAllSubmatch(text, -1) {
			flags[string(m[1])] = true
		}
		if part, _, _ := strings.Cut(name, "/"); test &&
			slices.Contains([]string{"quantize", "prune", "sparse", "distill"}, part) {
			for _, m := range optionWord.FindAllSubmatch(text, -1) {
				options[string(m[1])] = true
			}
		}
	}
	return flags, options
}
