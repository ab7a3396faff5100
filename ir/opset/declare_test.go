package opset

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// gelu is the function local.Block: ONNX Runtime's Gelu, and an operator behind it.
func gelu(m *ir.Model) {
	f := m.AddFunction(ir.OpID{Domain: "local", Type: "Block"})
	f.Opsets = []ir.Opset{m.Opsets[0], {Domain: Contributed, Version: 1}}
	in := f.Body.AddValue("a")
	f.Body.Inputs = []*ir.Value{in}
	y := f.Body.Insert(nil, "Cast", []*ir.Value{in}, ir.IntAttr("to", int64(ir.Float)))
	f.Body.AddOutput(f.Body.Insert(nil, "Relu", []*ir.Value{contributedGelu(f.Body, y)}))
}

func contributedGelu(g *ir.Graph, x *ir.Value) *ir.Value {
	y := g.Insert(nil, "Gelu", []*ir.Value{x})
	y.Producer().Op.Domain = Contributed
	return y
}

func callOf(g *ir.Graph, op string, x *ir.Value) *ir.Value {
	y := g.Insert(nil, op, []*ir.Value{x})
	y.Producer().Op.Domain = "local"
	return y
}

// branched is an If whose branches return what then makes of x, and -x, and state no types.
func branched(g *ir.Graph, x *ir.Value, then func(*ir.Graph, *ir.Value) *ir.Value) *ir.Value {
	y := g.Insert(nil, "If",
		[]*ir.Value{g.Insert(nil, "Cast", []*ir.Value{g.AddConst("c", integers(g, ir.Bool).Const)},
			ir.IntAttr("to", int64(ir.Bool)))})
	for attr, of := range map[string]func(*ir.Graph, *ir.Value) *ir.Value{
		"then_branch": then,
		"else_branch": func(g *ir.Graph, x *ir.Value) *ir.Value { return g.Insert(nil, "Neg", []*ir.Value{x}) },
	} {
		b := ir.NewSubgraph(g, y.Producer())
		b.Name = attr
		b.AddOutput(of(b, x))
		y.Producer().SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: b})
	}
	return y
}

// onnx.checker finds the types behind operators that it does not know, wherever these are.
func TestDeclaredTypesSatisfyTheFullCheck(t *testing.T) {
	w := conform.Start(t)
	block := func(g *ir.Graph, x *ir.Value) *ir.Value { return callOf(g, "Block", x) }
	for name, build := range map[string]func(g *ir.Graph, x *ir.Value) *ir.Value{
		"call":           block,
		"call of a call": func(g *ir.Graph, x *ir.Value) *ir.Value { return block(g, block(g, x)) },
		"branch":         func(g *ir.Graph, x *ir.Value) *ir.Value { return branched(g, x, contributedGelu) },
		"call in a branch": func(g *ir.Graph, x *ir.Value) *ir.Value {
			return branched(g, x, func(g *ir.Graph, x *ir.Value) *ir.Value {
				return g.Insert(nil, "Exp", []*ir.Value{block(g, x)})
			})
		},
		"nested function": func(g *ir.Graph, x *ir.Value) *ir.Value {
			outer(g.Model(), block)
			return callOf(g, "Outer", x)
		},
		"branch in a function": func(g *ir.Graph, x *ir.Value) *ir.Value {
			outer(g.Model(), func(g *ir.Graph, x *ir.Value) *ir.Value {
				return branched(g, g.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Float))), block)
			})
			return callOf(g, "Outer", x)
		},
	} {
		declares := func(t *testing.T, version int64) {
			m := ir.NewModel()
			m.IRVersion, m.Opsets, m.Graph.Name = 10,
				[]ir.Opset{{Domain: "", Version: version}, {Domain: "local", Version: 1}, {Domain: Contributed, Version: 1}}, "main"
			gelu(m)
			x := declaredAs(m.Graph, ir.Float, m.Graph.AddValue("x"))
			m.Graph.Inputs = []*ir.Value{x}
			m.Graph.AddOutput(declaredAs(m.Graph, ir.Float, m.Graph.Insert(nil, "Relu", []*ir.Value{build(m.Graph, x)})))
			path := filepath.Join(t.TempDir(), "m.onnx")
			if save(t, m, path); w.Check(path, true) == nil {
				t.Error("valid without declared types")
			}
			Declare(m)
			if err := m.Verify(); err != nil {
				t.Fatal(err)
			}
			save(t, m, path)
			if err := w.Check(path, true); err != nil {
				t.Error(err)
			}
			if _, err := w.Run(path, conform.Options{Random: true, Level: "none"}); err != nil {
				t.Error(err)
			}
			again := openModel(t, path)
			Declare(again)
			if a, b := again.Graph.NodeCount(), m.Graph.NodeCount(); a != b {
				t.Errorf("%d nodes, then %d", b, a)
			}
		}
		for _, version := range []int64{9, 12, 17} { // before 9, Constant has no bool for the condition
			t.Run(fmt.Sprint(name, " at opset ", version), func(t *testing.T) { declares(t, version) })
		}
	}
}

// outer adds the function local.Outer, which reads what make makes of its argument.
func outer(m *ir.Model, make func(*ir.Graph, *ir.Value) *ir.Value) {
	f := m.AddFunction(ir.OpID{Domain: "local", Type: "Outer"})
	f.Opsets = []ir.Opset{m.Opsets[0], {Domain: "local", Version: 1}}
	in := f.Body.AddValue("a")
	f.Body.Inputs = []*ir.Value{in}
	f.Body.AddOutput(f.Body.Insert(nil, "Relu", []*ir.Value{make(f.Body, in)}))
}
