package engine_test

import (
	"errors"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// An index out of range is marked if floats of the run decide on it, in subgraphs too, and not if it is an input or
// follows from shapes.
func TestErrorsThatComputedFloatsCause(t *testing.T) {
	ints := func(xs ...int64) *ir.Tensor {
		return &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(xs))}},
			Source: ir.Mem(ir.ArrayOf(xs, int64(len(xs))).Data)}
	}
	cast := func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.Int64)))
	}
	gather := func(g *ir.Graph, i *ir.Value) *ir.Value {
		return g.Insert(nil, "Gather", []*ir.Value{g.AddConst("table", ints(1, 2, 3)), i})
	}
	for name, c := range map[string]struct {
		of    ir.DType // of the input, two times 9
		build func(g *ir.Graph, x *ir.Value) *ir.Value
		want  bool
	}{
		"index of floats": {ir.Float, func(g *ir.Graph, x *ir.Value) *ir.Value { return gather(g, cast(g, x)) }, true},
		"index of an input": {ir.Int64, func(g *ir.Graph, x *ir.Value) *ir.Value {
			return gather(g, g.Insert(nil, "Add", []*ir.Value{x, g.AddConst("one", ints(1))}))
		}, false},
		"index of a shape": {ir.Float, func(g *ir.Graph, x *ir.Value) *ir.Value {
			s := g.Insert(nil, "Shape", []*ir.Value{x})
			return gather(g, g.Insert(nil, "Mul", []*ir.Value{s, g.AddConst("nine", ints(9))}))
		}, false},
		"size of floats": {ir.Float, func(g *ir.Graph, x *ir.Value) *ir.Value {
			y := g.Insert(nil, "Expand", []*ir.Value{g.AddConst("one", ints(1)), cast(g, x)})
			return g.Insert(nil, "Add", []*ir.Value{y, g.AddConst("three", ints(1, 2, 3))})
		}, true},
		"branch": {ir.Float, func(g *ir.Graph, x *ir.Value) *ir.Value {
			p := g.Insert(nil, "Greater", []*ir.Value{g.Insert(nil, "ReduceMax", []*ir.Value{x},
				ir.IntAttr("keepdims", 0)), g.Insert(nil, "ReduceMin", []*ir.Value{x}, ir.IntAttr("keepdims", 0))})
			y := g.Insert(nil, "If", []*ir.Value{p})
			for _, attr := range []string{"then_branch", "else_branch"} {
				b := ir.NewSubgraph(g, y.Producer())
				b.AddOutput(gather(b, cast(b, x)))
				y.Producer().SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: b})
			}
			return y
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := ir.NewModel()
			m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
			x := m.Graph.AddValue("x")
			x.Type = &ir.Type{Elem: c.of, Shape: []ir.Dim{{N: 2}}}
			m.Graph.Inputs = append(m.Graph.Inputs, x)
			m.Graph.AddOutput(c.build(m.Graph, x))
			e, err := engine.Open(t.Context(), m, engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			in := ir.ArrayOf([]float32{9, 9}, 2)
			if c.of == ir.Int64 {
				in = ir.ArrayOf([]int64{9, 9}, 2)
			}
			_, err = e.Run(t.Context(), map[string]*ir.Array{"x": in}, nil)
			if err == nil {
				t.Fatal("it runs")
			}
			var values *engine.ValuesError
			if got := errors.As(err, &values); got != c.want {
				t.Errorf("%v: %v, want %v", err, got, c.want)
			}
		})
	}
}
