package engine

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A graph whose edges have two types is refused, as ONNX Runtime does, also where the operators here would compute it;
// inside of bodies and functions too. Package opset compares the rules with ONNX Runtime.
func TestInconsistentTypes(t *testing.T) {
	half := func(g *ir.Graph) *ir.Value {
		return g.AddConst("half", &ir.Tensor{Spec: ir.Spec{DType: ir.Float16, Shape: []int64{1}},
			Source: make(ir.Mem, 2)})
	}
	sum := func(g *ir.Graph, x *ir.Value) *ir.Value { return g.Insert(nil, "Add", []*ir.Value{x, half(g)}) }
	for name, build := range map[string]func(g *ir.Graph, x *ir.Value) *ir.Value{
		"node": sum,
		"body": func(g *ir.Graph, x *ir.Value) *ir.Value {
			y := g.Insert(nil, "If", []*ir.Value{g.AddConst("condition",
				&ir.Tensor{Spec: ir.Spec{DType: ir.Bool}, Source: ir.Mem{1}})})
			for _, attr := range []string{"then_branch", "else_branch"} {
				b := ir.NewSubgraph(g, y.Producer())
				b.AddOutput(sum(b, x))
				y.Producer().SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: b})
			}
			return y
		},
		"function": func(g *ir.Graph, x *ir.Value) *ir.Value {
			fn := g.Model().AddFunction(ir.OpID{Domain: "local", Type: "Sum"})
			fn.Opsets = []ir.Opset{{Version: 17}}
			in := fn.Body.NewValue("in")
			fn.Body.Inputs = append(fn.Body.Inputs, in)
			fn.Body.AddOutput(sum(fn.Body, in))
			y := g.Insert(nil, "Sum", []*ir.Value{x})
			y.Producer().Op = fn.ID
			return y
		},
		"output": func(g *ir.Graph, x *ir.Value) *ir.Value {
			y := g.Insert(nil, "Relu", []*ir.Value{x})
			y.Type = &ir.Type{Elem: ir.Float16}
			return y
		},
	} {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}, {Domain: "local", Version: 1}}
		x := m.Graph.NewValue("x")
		x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}}}
		m.Graph.Inputs = append(m.Graph.Inputs, x)
		m.Graph.AddOutput(build(m.Graph, x))
		e, err := Open(t.Context(), m, Options{})
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "not a valid model: ") ||
			!strings.Contains(err.Error(), "float and") && !strings.Contains(err.Error(), "declared as") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
