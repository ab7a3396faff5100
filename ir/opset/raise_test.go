package opset

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// chain is a model of opset 7 that runs x through one node after another.
func chain(ops ...*ir.Node) *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 7}}
	link(m.Graph, ops...)
	return m
}

// link fills a graph: each node reads what the one before made.
func link(g *ir.Graph, ops ...*ir.Node) {
	v := g.NewValue("x")
	v.Type = &ir.Type{Elem: ir.Float, Shape: dims([]int64{2, 1, 1, 3})}
	g.Inputs = append(g.Inputs, v)
	for _, op := range ops {
		n := g.NewNode(op.Op, []*ir.Value{v}, op.Attrs...)
		v = g.NewValue("v")
		n.SetOutputs(v)
		g.Append(n)
	}
	g.AddOutput(v)
}

func op(name string, attrs ...*ir.Attr) *ir.Node {
	return &ir.Node{Op: ir.OpID{Type: name}, Attrs: attrs}
}

func squeezed(axis int64) *ir.Node { return op("Squeeze", ir.IntsAttr("axes", axis)) }

func wantText(t *testing.T, g *ir.Graph, want string) {
	t.Helper()
	if got := text(g); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func wantReason(t *testing.T, err error, want string) {
	t.Helper()
	var no *Unsupported
	if !errors.As(err, &no) || no.Reason != want {
		t.Errorf("got %v, want the reason %q", err, want)
	}
}

func TestRaiseIsAllOrNothing(t *testing.T) {
	m := chain(squeezed(1), op("ImageScaler"))
	before := text(m.Graph)
	err := raise(t, m, 13)
	want := `opset 7 to 13: node "ImageScaler(v1)" (ImageScaler): is not an operator of the standard`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	wantText(t, m.Graph, before)
	if m.Opset("") != 7 || len(m.Graph.Consts()) != 0 {
		t.Errorf("opset %d and %d constants after a refusal", m.Opset(""), len(m.Graph.Consts()))
	}
}

func TestCanRaiseChangesNothing(t *testing.T) {
	m := chain(squeezed(1), op("Softmax"))
	before := text(m.Graph)
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	if err := CanRaise(context.Background(), e, m, 13); err != nil {
		t.Error(err)
	}
	wantText(t, m.Graph, before)
	if m.Opset("") != 7 {
		t.Errorf("opset %d", m.Opset(""))
	}
}

func TestEqualConstantsAreStoredOnce(t *testing.T) {
	m := chain(squeezed(1), squeezed(1))
	if err := raise(t, m, 13); err != nil {
		t.Fatal(err)
	}
	wantText(t, m.Graph, "v = Squeeze(x, [1])\nv1 = Squeeze(v, [1])")
	if n := len(m.Graph.Consts()); n != 1 {
		t.Errorf("%d constants, want 1", n)
	}
}

func TestHigherOpsetsStay(t *testing.T) {
	m := chain(squeezed(1))
	m.Opsets[0].Version = 11
	if err := raise(t, m, 10); err != nil {
		t.Fatal(err)
	}
	wantText(t, m.Graph, "v = Squeeze<axes=[1]>(x)")
	if m.Opset("") != 11 {
		t.Errorf("opset %d", m.Opset(""))
	}
}

func TestUnknownOpsetIsAnError(t *testing.T) {
	for _, to := range []int64{0, Newest + 1} {
		if err := raise(t, chain(squeezed(1)), to); err == nil {
			t.Errorf("no error for opset %d", to)
		}
	}
}

func TestImportIsAddedWhereThereIsNone(t *testing.T) {
	m := chain(&ir.Node{Op: ir.OpID{Domain: "own", Type: "Op"}})
	m.Opsets = []ir.Opset{{Domain: "own", Version: 1}}
	if err := raise(t, m, 13); err != nil {
		t.Fatal(err)
	}
	if m.Opset("") != 13 || m.Opset("own") != 1 {
		t.Errorf("imports %v", m.Opsets)
	}
}

// Declared shapes that no run has are corrected, as later opsets infer more and onnx.checker would refuse them; those
// that runs may have stay.
func TestDeclaredShapesThatContradictAreCorrected(t *testing.T) {
	oracle := conform.Start(t)
	for _, c := range []struct {
		name     string
		declared []ir.Dim
		want     []ir.Dim
	}{
		{"rank", []ir.Dim{{N: 1}, {N: -1, Param: "n"}}, dims([]int64{3, 2, 1})},
		{"size", []ir.Dim{{N: 4}, {N: -1, Param: "n"}, {N: 1}}, dims([]int64{3, 2, 1})},
		{"right", []ir.Dim{{N: 3}, {N: -1, Param: "n"}, {N: 1}}, []ir.Dim{{N: 3}, {N: -1, Param: "n"}, {N: 1}}},
	} {
		m := ir.NewModel()
		m.IRVersion, m.Opsets, m.Graph.Name = 7, []ir.Opset{{Version: 12}}, "g"
		x := m.Graph.AddValue("x")
		x.Type = &ir.Type{Elem: ir.Float, Shape: dims([]int64{2, 1, 1, 3})}
		m.Graph.Inputs = []*ir.Value{x}
		size := func(axis int64) *ir.Value {
			at := m.Graph.AddConst("axis", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64}, Source: ir.Ints(axis)})
			n := m.Graph.Insert(nil, "Gather", []*ir.Value{m.Graph.Insert(nil, "Shape", []*ir.Value{x}), at})
			return m.Graph.Insert(nil, "Unsqueeze", []*ir.Value{n}, ir.IntsAttr("axes", 0))
		}
		one := m.Graph.AddConst("one", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}}, Source: ir.Ints(1)})
		shape := m.Graph.Insert(nil, "Concat", []*ir.Value{size(3), size(0), one}, ir.IntAttr("axis", 0))
		y := m.Graph.Insert(nil, "Reshape", []*ir.Value{x, shape})
		y.Name, y.Type = "y", &ir.Type{Elem: ir.Float, Shape: c.declared}
		m.Graph.AddOutput(y)
		if err := raise(t, m, 19); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(y.Type.Shape, c.want) {
			t.Errorf("%s: %v, want %v", c.name, y.Type.Shape, c.want)
		}
		path := filepath.Join(t.TempDir(), "m.onnx")
		if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := oracle.Check(path, true); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSubgraphsAreRaised(t *testing.T) {
	branch := &ir.Attr{Name: "then_branch", Type: ir.AttrGraph}
	m := chain(op("If", branch))
	owner := m.Graph.Outputs[0].Producer()
	branch.Graph = ir.NewSubgraph(m.Graph, owner)
	link(branch.Graph, squeezed(1))
	if err := raise(t, m, 13); err != nil {
		t.Fatal(err)
	}
	wantText(t, branch.Graph, "v1 = Squeeze(x1, [1])")
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	if len(branch.Graph.Consts()) != 1 {
		t.Error("the constant is not in the graph that reads it")
	}
}

// A function has its own imports, and attributes whose values its callers choose.
func TestFunctionsAreRaised(t *testing.T) {
	m := chain(&ir.Node{Op: ir.OpID{Domain: "own", Type: "F"}})
	f := m.AddFunction(ir.OpID{Domain: "own", Type: "F"})
	f.Opsets = []ir.Opset{{Domain: "ai.onnx", Version: 11}}
	link(f.Body, squeezed(1))
	if err := raise(t, m, 13); err != nil {
		t.Fatal(err)
	}
	wantText(t, f.Body, "v1 = Squeeze(x1, [1])")
	if f.Opsets[0].Version != 13 {
		t.Errorf("imports %v", f.Opsets)
	}
}

func TestParametersOfFunctionsAreRefused(t *testing.T) {
	for _, n := range []*ir.Node{
		op("Squeeze", &ir.Attr{Name: "axes", Type: ir.AttrInts, Ref: "axes"}),
		op("Softmax", &ir.Attr{Name: "axis", Type: ir.AttrInt, Ref: "axis"}),
		op("Dropout", &ir.Attr{Name: "ratio", Type: ir.AttrFloat, Ref: "ratio"}),
	} {
		name := n.Attrs[0].Name
		wantReason(t, raise(t, chain(n), 13), "attribute "+name+" is a parameter of its function")
	}
}

func TestOwnFunctionsOfTheDefaultDomainAreNoOperators(t *testing.T) {
	m := chain(op("ImageScaler"))
	f := m.AddFunction(ir.OpID{Type: "ImageScaler"})
	f.Opsets = []ir.Opset{{Version: 13}}
	if err := raise(t, m, 13); err != nil {
		t.Error(err)
	}
}

func TestOperatorsOfLaterOpsetsAreRefused(t *testing.T) {
	wantReason(t, raise(t, chain(op("Gelu")), 13), "exists from opset 20 on")
}

func TestOperatorsOfTheRuntimeStay(t *testing.T) {
	for _, c := range []struct {
		to    int64
		scale ir.DType
		want  bool
	}{{13, ir.Float, true}, {13, ir.Float16, true}, {21, ir.Float, true}, {21, ir.Float16, false}} {
		m := chain(op("SimplifiedLayerNormalization"))
		scale := m.Graph.NewValue("scale")
		scale.Type = &ir.Type{Elem: c.scale, Shape: dims([]int64{3})}
		m.Graph.Inputs = append(m.Graph.Inputs, scale)
		m.Graph.Insert(nil, "LayerNormalization", []*ir.Value{m.Graph.Inputs[0], scale})
		if err := raise(t, m, c.to); (err == nil) != c.want {
			t.Errorf("to %d, scale %v: %v", c.to, c.scale, err)
		}
	}
}

// A payload that cannot be read is no refusal: the model is broken.
func TestUnreadableConstantIsAnError(t *testing.T) {
	m := chain()
	m.Opsets[0].Version = 10
	x := m.Graph.Inputs[0]
	short := &ir.Tensor{Spec: ir.Spec{Name: "s", DType: ir.Float, Shape: []int64{4}},
		Source: ir.Span{R: bytes.NewReader(nil)}}
	m.Graph.Insert(nil, "Resize", []*ir.Value{x, m.Graph.AddConst("s", short)})
	err := raise(t, m, 11)
	var no *Unsupported
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &no) {
		t.Errorf("got %v", err)
	}
}

// A default that a caller may override is no constant.
func TestOverridableScalesAreNotConstant(t *testing.T) {
	for _, c := range []struct {
		ir   int64
		want bool
	}{{3, true}, {4, false}} {
		m := chain()
		m.IRVersion = c.ir
		m.Opsets[0].Version = 10
		s := m.Graph.AddConst("s", floatTensor([]int64{4}, []float32{1, 1, 2, 2}))
		m.Graph.Inputs = append(m.Graph.Inputs, s)
		m.Graph.Insert(nil, "Resize", []*ir.Value{m.Graph.Inputs[0], s})
		if err := raise(t, m, 11); (err == nil) != c.want {
			t.Errorf("IR %d: %v", c.ir, err)
		}
	}
}

// Files may hold nodes that lack whatever their operator needs.
func TestBareNodesAreNoPanic(t *testing.T) {
	for _, o := range operators {
		for _, from := range o.since {
			m := ir.NewModel()
			m.Opsets = []ir.Opset{{Version: from}}
			n := m.Graph.NewNode(ir.OpID{Type: o.name}, nil)
			m.Graph.Append(n)
			y := m.Graph.Insert(n, o.name, nil)
			Shape(y)
			Elem(y)
			if err := raise(t, m, Newest); err == nil && m.Opset("") != Newest {
				t.Errorf("%s of opset %d: raised to %d", o.name, from, m.Opset(""))
			}
		}
	}
}

func TestIRVersion(t *testing.T) {
	for _, c := range [][2]int64{{-1, 0}, {0, 0}, {1, 3}, {7, 3}, {9, 4}, {11, 6}, {13, 7}, {18, 8}, {21, 10},
		{Newest + 1, 0}} {
		if got := IRVersion(c[0]); got != c[1] {
			t.Errorf("opset %d: IR %d, want %d", c[0], got, c[1])
		}
	}
}

// Generated files must agree with the pinned onnx.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	python := conform.Python(t)
	for _, name := range []string{"history", "signatures"} {
		want, err := exec.Command(python, filepath.Join("gen", name+".py")).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s.go differs from what gen/%[1]s.py prints; run go generate", name)
		}
	}
}
