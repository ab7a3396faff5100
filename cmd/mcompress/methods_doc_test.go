package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// TestMethodsAreDocumented holds docs/methods.md against the list of methods.
func TestMethodsAreDocumented(t *testing.T) {
	golden(t, "../../docs/methods.md", methodsDoc())
}

const methodsHead = `# Methods

Every method, what it does and its options, as the command line and recipes take them. This page is written by
` + "`go test ./cmd/mcompress -update`" + ` from the list in ` + "`cmd/mcompress/methods.go`" + `.

In a recipe (` + "`mcompress apply RECIPE.yaml MODEL`" + `) steps stand in the order of their stages: prepare, train, prune, quantize, sparsify.

| method | command | stage | what it does |
|---|---|---|---|
`

func methodsDoc() string {
	var b strings.Builder
	b.WriteString(methodsHead)
	for _, m := range methods {
		fmt.Fprintf(&b, "| [`%s`](#%s) | `%s` | %s | %s |\n", m.Name, m.Name, invocation(m), m.Stage, cell(m.Doc))
	}
	b.WriteString("\nAll methods have these options, which select tensors:\n\n" + optionsHead)
	common := commonOptions()
	pass.Flags(methods[0]).VisitAll(func(f *flag.Flag) {
		if common[f.Name] {
			b.WriteString(optionRow(f))
		}
	})
	for _, m := range methods {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", m.Name, strings.ToUpper(m.Doc[:1])+m.Doc[1:])
		rows := ""
		pass.Flags(m).VisitAll(func(f *flag.Flag) {
			if !common[f.Name] {
				rows += optionRow(f)
			}
		})
		if rows != "" {
			b.WriteString("\n" + optionsHead + rows)
		}
	}
	return b.String()
}

const optionsHead = "| option | default | meaning |\n|---|---|---|\n"

func optionRow(f *flag.Flag) string {
	placeholder, usage := flag.UnquoteUsage(f)
	name := "--" + f.Name
	if !mcli.IsBool(f) {
		name += " " + strings.ToUpper(placeholder)
	}
	def := f.DefValue
	if def != "" {
		def = "`" + def + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, def, cell(usage))
}

// commonOptions are those that every method has.
func commonOptions() map[string]bool {
	count := map[string]int{}
	for _, m := range methods {
		pass.Flags(m).VisitAll(func(f *flag.Flag) { count[f.Name]++ })
	}
	common := map[string]bool{}
	for name, n := range count {
		common[name] = n == len(methods)
	}
	return common
}

func invocation(m *pass.Method) string {
	choose := "--method"
	if m.Command == "sparse" {
		choose = "--format"
	}
	return fmt.Sprintf("mcompress %s %s %s", m.Command, choose, m.Name)
}

// cell is text as a Markdown table takes it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
