package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcompress/mcompress/report/inspection"
)

// ModuleTree writes the modules of a model with the number and size of their constants.
func ModuleTree(w io.Writer, s Style, path string, f *inspection.Model) error {
	t := &textTable{indent: "  ", align: "lrr"}
	t.add("module", "tensors", "size")
	root := f.Modules()
	addModules(t, root.Modules, 0)
	rest := inspection.Module{Tensors: root.Tensors, Bytes: root.Bytes}
	for _, m := range root.Modules {
		rest.Tensors, rest.Bytes = rest.Tensors-m.Tensors, rest.Bytes-m.Bytes
	}
	if rest.Tensors > 0 {
		t.add("(no module)", fmt.Sprint(rest.Tensors), sizeOrNone(rest.Bytes))
	}
	if _, err := fmt.Fprintln(w, s.bold(path)); err != nil {
		return err
	}
	return t.write(w)
}

func addModules(t *textTable, modules []*inspection.Module, depth int) {
	for _, m := range modules {
		t.add(strings.Repeat("  ", depth)+m.Name, fmt.Sprint(m.Tensors), sizeOrNone(m.Bytes))
		addModules(t, m.Modules, depth+1)
	}
}
