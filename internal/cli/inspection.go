package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcompress/mcompress/report/inspection"
)

// Inspection writes facts about a model as text.
func Inspection(w io.Writer, s Style, path string, f *inspection.Model) error {
	tables := []struct {
		title string
		table *textTable
	}{
		{path, overview(f)},
		{"operators", operatorTable(f)},
		{"element types", dtypeTable(f)},
		{"tensors", tensorTable(f)},
	}
	for _, t := range tables {
		if len(t.table.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(w, s.bold(t.title)); err != nil {
			return err
		}
		if err := t.table.write(w); err != nil {
			return err
		}
	}
	return nil
}

func overview(f *inspection.Model) *textTable {
	t := &textTable{indent: "  "}
	for i, file := range f.Files {
		t.add(first(i, "files"), file.Name+"  "+size(file.Bytes))
	}
	t.add("IR version", fmt.Sprint(f.IRVersion))
	for i, o := range f.Opsets {
		t.add(first(i, "opsets"), domain(o.Domain)+" "+fmt.Sprint(o.Version))
	}
	for i, p := range f.Inputs {
		t.add(first(i, "inputs"), strings.TrimSpace(p.Name+"  "+p.Type))
	}
	for i, p := range f.Outputs {
		t.add(first(i, "outputs"), strings.TrimSpace(p.Name+"  "+p.Type))
	}
	for i, r := range f.Runtimes {
		t.add(first(i, "weights in"), r.Name+"  "+sizeOrNone(r.Bytes))
	}
	for i, fn := range f.Functions {
		t.add(first(i, "functions"), fn)
	}
	for i, e := range f.Meta {
		t.add(first(i, "metadata"), e.Key+" = "+e.Value)
	}
	return t
}

func domain(d string) string {
	if d == "" {
		return "ai.onnx"
	}
	return d
}

func operatorTable(f *inspection.Model) *textTable {
	t := &textTable{indent: "  ", align: "lrr"}
	for _, o := range f.Operators {
		t.add(o.Op, fmt.Sprint(o.Nodes), sizeOrNone(o.Bytes))
	}
	return t
}

func dtypeTable(f *inspection.Model) *textTable {
	t := &textTable{indent: "  ", align: "lrr"}
	for _, d := range f.DTypes {
		t.add(d.DType, fmt.Sprint(d.Tensors), sizeOrNone(d.Bytes))
	}
	return t
}

func tensorTable(f *inspection.Model) *textTable {
	t := &textTable{indent: "  ", align: "llrrl"}
	for _, x := range f.Tensors {
		zeros := ""
		if x.Sparsity != nil {
			zeros = percent(*x.Sparsity) + " zeros"
		}
		name := x.Name
		if x.Scope != "" {
			name = x.Scope + ": " + name
		}
		t.add(name, spec(x.DType, x.Shape), sizeOrNone(x.Bytes), zeros, consumers(x))
	}
	return t
}

// maxConsumers is the number of consumers on a line.
const maxConsumers = 3

func consumers(x inspection.Tensor) string {
	text := strings.Join(x.Consumers[:min(len(x.Consumers), maxConsumers)], ", ")
	if n := len(x.Consumers) - maxConsumers; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if text == "" {
		text = "(no consumer)"
	}
	if x.DuplicateOf != "" {
		text += "  = " + x.DuplicateOf
	}
	return text
}

func sizeOrNone(n int64) string {
	if n == 0 {
		return "–"
	}
	return size(n)
}
