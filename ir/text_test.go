package ir_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

var update = flag.Bool("update", false, "write the golden files anew")

func open(t *testing.T, path string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

func text(t *testing.T, m *ir.Model) string {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	var b strings.Builder
	if err := m.Text(context.Background(), e, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func fixtures(t *testing.T) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "fixtures")
}

func TestTextOfFixtures(t *testing.T) {
	for _, name := range []string{
		"mlp", "cnn", "recurrent", "opset7", "overridable", "external", "typed", "int4", "half",
		"chains", "function", "function_argument", "subgraph_if_outer", "subgraph_nested", "metadata",
	} {
		t.Run(name, func(t *testing.T) {
			got := text(t, open(t, filepath.Join(fixtures(t), name+".onnx")))
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from\n%s", golden, got)
			}
		})
	}
}

// shrink gives every large constant a payload that the text holds, so that the text
// has everything.
func shrink(m *ir.Model) {
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			v.Const = small(v.Const)
		}
		for n := range g.Nodes() {
			for _, a := range n.Attrs {
				if a.Tensor != nil {
					a.Tensor = small(a.Tensor)
				}
			}
		}
	}
}

func small(t *ir.Tensor) *ir.Tensor {
	if t.Elems() <= 8 && t.DType != ir.String {
		return t
	}
	s := ir.Spec{Name: t.Name, DType: t.DType, Shape: []int64{2}}
	if t.DType == ir.String {
		s.DType = ir.Uint8
	}
	return &ir.Tensor{Spec: s, Source: ir.Mem(make([]byte, s.Bytes()))}
}

// onnx.parser reads the text, and what it reads is the graph that was written.
func TestONNXParsesTheText(t *testing.T) {
	w := conform.Start(t)
	generated, err := w.GenerateSet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Concat(generated, below(t, fixtures(t)), below(t, filepath.Join(conform.Shared(t), "fixtures")))
	parsed := 0
	for _, path := range paths {
		f, err := onnx.Open(path)
		if err != nil {
			continue // onnx's own tests say why
		}
		if why := inexpressible(f.Model); why != "" {
			t.Logf("%s: %s", filepath.Base(path), why)
		} else {
			parsed++
			parses(t, w, path, f.Model)
		}
		f.Close()
	}
	if parsed*10 < len(paths)*8 {
		t.Errorf("only %d of %d models can be written as text", parsed, len(paths))
	}
}

func parses(t *testing.T, w *conform.Worker, path string, m *ir.Model) {
	t.Helper()
	if err := w.ParseText(text(t, m), filepath.Join(t.TempDir(), "as_it_is.onnx")); err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	shrink(m)
	first := text(t, m)
	out := filepath.Join(t.TempDir(), "parsed.onnx")
	if err := w.ParseText(first, out); err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	f, err := onnx.Open(out)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	defer f.Close()
	want, got := outline(t, m), outline(t, f.Model)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Errorf("%s: parsed text differs at line %d:\nwant %q\ngot  %q", path, i, at(want, i), at(got, i))
			return
		}
	}
	if again := text(t, f.Model); again != first {
		t.Errorf("%s: the text of the parsed text is another", path)
	}
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "nothing"
}

func below(t *testing.T, folder string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".onnx") && strings.Count(filepath.Base(path), ".") == 1 {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models below %s: %v", folder, err)
	}
	return paths
}

var (
	word   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	dotted = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)*[A-Za-z_][A-Za-z0-9_]*$`)
)

// inexpressible is what the syntax, or its parser, cannot express of m.
func inexpressible(m *ir.Model) string {
	for v := range m.Values() {
		if v.Ambiguous {
			return "a name that two values have"
		}
		if !utf8.ValidString(v.Name) {
			return "a name that is no UTF-8"
		}
	}
	for n := range m.Nodes() {
		if !dotted.MatchString(strings.TrimSuffix(n.Op.String(), ":"+n.Op.Overload)) {
			return fmt.Sprintf("operator %q", n.Op)
		}
		for _, a := range n.Attrs {
			if why := inexpressibleAttr(a); why != "" {
				return fmt.Sprintf("attribute %q: %s", a.Name, why)
			}
		}
	}
	if len(m.Graph.Consts()) == 0 && m.Graph.Last() == nil {
		return "an empty graph"
	}
	return ""
}

func inexpressibleAttr(a *ir.Attr) string {
	switch {
	case !word.MatchString(a.Name):
		return "its name is no word"
	case a.Graph != nil && !word.MatchString(a.Graph.Name):
		return "the name of its graph is no word"
	case a.Tensors != nil, a.Graphs != nil:
		return "the parser drops lists of tensors and graphs"
	case a.Elided, a.Sparse != nil, a.Type == 0, a.Type > ir.AttrSparse:
		return "a value that the text leaves out"
	case a.Type == ir.AttrTensor && a.Tensor == nil && a.Ref == "":
		return "a tensor that is absent"
	}
	if s := a.S + strings.Join(a.Strings, ""); !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		return "a string that is no text"
	}
	return ""
}

// outline lists what a model consists of, so that two can be compared without Text.
func outline(t *testing.T, m *ir.Model) []string {
	t.Helper()
	lines := []string{fmt.Sprint(m.IRVersion, len(m.Functions))}
	for _, o := range m.Opsets {
		lines = append(lines, fmt.Sprint(o.Domain, o.Version))
	}
	for g := range m.Graphs() {
		lines = append(lines, fmt.Sprintf("graph %q %s => %s", g.Name, labels(g.Inputs), labels(g.Outputs)))
		var consts []string // those that are inputs come first in the text
		for _, v := range g.Consts() {
			consts = append(consts, "const "+v.Name+" "+payload(t, v.Const))
		}
		lines = append(lines, slices.Sorted(slices.Values(consts))...)
		for n := range g.Nodes() {
			lines = append(lines, fmt.Sprintf("%q %s %s => %s", n.Name, n.Op, labels(n.Inputs()), labels(n.Outputs)))
			for _, a := range n.Attrs {
				lines = append(lines, attribute(t, a))
			}
		}
	}
	return lines
}

func labels(vs []*ir.Value) string {
	var s []string
	for _, v := range vs {
		if v == nil {
			s = append(s, "-")
			continue
		}
		s = append(s, fmt.Sprintf("%q", v.Name))
	}
	return strings.Join(s, ",")
}

func attribute(t *testing.T, a *ir.Attr) string {
	s := fmt.Sprintf("%s %d %x %d %q %v %v %q", a.Name, a.Type, math.Float32bits(a.F), a.I, a.S, a.Floats, a.Ints,
		a.Strings)
	if a.Ref != "" {
		s = fmt.Sprintf("%s @%s", a.Name, a.Ref)
	}
	if a.Tensor != nil {
		s += payload(t, a.Tensor)
	}
	return s
}

func payload(t *testing.T, tensor *ir.Tensor) string {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	b, err := e.ReadAll(context.Background(), tensor)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %x", tensor.Spec, b)
}

// The values of every type come back as the bytes they were.
func TestValuesOfEveryType(t *testing.T) {
	w := conform.Start(t)
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	for d := ir.Float; d.Known(); d++ {
		if d == ir.String {
			continue
		}
		s := ir.Spec{DType: d, Shape: []int64{8}}
		b := make([]byte, s.Bytes())
		for i := range b {
			b[i] = byte(i*151+57) & 0xbf // no exponent of ones, so no NaN
		}
		m.Graph.AddConst("c", &ir.Tensor{Spec: s, Source: ir.Mem(b)})
	}
	out := filepath.Join(t.TempDir(), "parsed.onnx")
	if err := w.ParseText(text(t, m), out); err != nil {
		t.Fatal(err)
	}
	want, got := outline(t, m), outline(t, open(t, out))
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTextNeedsItsPayloads(t *testing.T) {
	m := ir.NewModel()
	short := ir.Span{R: strings.NewReader("ab")}
	m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{2}}, Source: short})
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	var b strings.Builder
	if err := m.Text(context.Background(), e, &b); err == nil || !strings.Contains(err.Error(), `"w"`) {
		t.Errorf("a payload that is short gave %v", err)
	}
}
