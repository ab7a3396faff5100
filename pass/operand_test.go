package pass_test

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

func TestTrace(t *testing.T) {
	perm := ir.IntsAttr("perm", 1, 0)
	for _, c := range []struct {
		name       string
		build      func(g *ir.Graph, w *ir.Value) *ir.Value
		shape      []int64
		transposed bool
		trouble    bool
	}{
		{"itself", func(g *ir.Graph, w *ir.Value) *ir.Value { return w }, []int64{2, 3}, false, false},
		{"identity", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Identity", []*ir.Value{w})
		}, []int64{2, 3}, false, false},
		{"transpose", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Transpose", []*ir.Value{w}, perm)
		}, []int64{3, 2}, true, false},
		{"transpose by default", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Transpose", []*ir.Value{w})
		}, []int64{3, 2}, true, false},
		{"transpose twice", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Transpose", []*ir.Value{g.Insert(nil, "Transpose", []*ir.Value{w}, perm)}, perm)
		}, []int64{2, 3}, false, false},
		{"reshape", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Reshape", []*ir.Value{w, g.AddConst("s", ints(3, -1))})
		}, []int64{3, 2}, false, false},
		{"reshape keeps 0", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Reshape", []*ir.Value{w, g.AddConst("s", ints(0, 3, 1))})
		}, []int64{2, 3, 1}, false, false},
		{"reshape of a transpose", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Reshape", []*ir.Value{g.Insert(nil, "Transpose", []*ir.Value{w}, perm),
				g.AddConst("s", ints(6))})
		}, nil, false, true},
		{"reshape that does not fit", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Reshape", []*ir.Value{w, g.AddConst("s", ints(4))})
		}, nil, false, true},
		{"unsqueeze and squeeze", func(g *ir.Graph, w *ir.Value) *ir.Value {
			u := g.Insert(nil, "Unsqueeze", []*ir.Value{w, g.AddConst("a", ints(-1))})
			return g.Insert(nil, "Squeeze", []*ir.Value{u, g.AddConst("a", ints(2))})
		}, []int64{2, 3}, false, false},
		{"cast to float16", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Cast", []*ir.Value{w}, ir.IntAttr("to", int64(ir.Float16)))
		}, []int64{2, 3}, false, false},
		{"cast to int", func(g *ir.Graph, w *ir.Value) *ir.Value {
			return g.Insert(nil, "Cast", []*ir.Value{w}, ir.IntAttr("to", int64(ir.Int64)))
		}, nil, false, true},
	} {
		m := product()
		w := m.Graph.AddConst("w", floats([]int64{2, 3}, 1, 2, 3, 4, 5, 6))
		o := pass.Trace(c.build(m.Graph, w))
		switch {
		case o == nil || o.Base != w:
			t.Errorf("%s: the constant was not found", c.name)
		case (!o.Trouble.None()) != c.trouble:
			t.Errorf("%s: trouble %q", c.name, o.Trouble)
		case !c.trouble && (!slices.Equal(o.Shape, c.shape) || o.Transposed != c.transposed):
			t.Errorf("%s: shape %v, transposed %v; want %v, %v", c.name, o.Shape, o.Transposed, c.shape, c.transposed)
		}
	}
}

func TestTraceStopsAtActivations(t *testing.T) {
	m := product(floats([]int64{1, 1}, 1))
	if o := pass.Trace(m.Graph.Inputs[0]); o != nil {
		t.Errorf("an input is traced to a constant: %+v", o)
	}
	if o := pass.Trace(m.Graph.Outputs[0]); o != nil {
		t.Errorf("a product is traced to a constant: %+v", o)
	}
}

func TestConsumersOfViews(t *testing.T) {
	m := product()
	g := m.Graph
	w := g.AddConst("w", floats([]int64{1, 1}, 1))
	turned := g.Insert(nil, "Transpose", []*ir.Value{w})
	y := g.Insert(nil, "MatMul", []*ir.Value{g.Inputs[0], turned})
	g.Insert(nil, "Add", []*ir.Value{y, w})
	var ops []string
	for _, n := range pass.Consumers(w) {
		ops = append(ops, n.Op.Type)
	}
	if !slices.Equal(ops, []string{"MatMul", "Add"}) {
		t.Errorf("got %v", ops)
	}
}

// Trace supports every operator that is a view in the operator table.
func TestTraceFollowsEveryView(t *testing.T) {
	for _, op := range []string{"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Relu"} {
		if view := operator.Lookup(ir.OpID{Type: op}).Move == operator.View; view != (op != "Relu") {
			t.Fatalf("%s is a view: %v", op, view)
		}
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 11}}
		w := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{1, 2, 3}},
			Source: ir.Mem(make([]byte, 24))})
		in := []*ir.Value{w}
		if op == "Reshape" {
			in = append(in, m.Graph.AddConst("s", ints(1, 6)))
		}
		var attrs []*ir.Attr
		if op == "Squeeze" || op == "Unsqueeze" {
			attrs = append(attrs, ir.IntsAttr("axes", 0))
		}
		if o := pass.Trace(m.Graph.Insert(nil, op, in, attrs...)); (o != nil && o.Trouble.None()) != (op != "Relu") {
			t.Errorf("%s: %+v", op, o)
		}
	}
}

// Recursion would need a stack as deep as the chain.
func TestLongChainsOfViews(t *testing.T) {
	g := ir.NewModel().Graph
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 3}}})
	v := w
	for range 1_000_000 {
		v = g.Insert(nil, "Identity", []*ir.Value{v})
	}
	g.AddOutput(v)
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	if o := pass.Trace(v); o == nil || o.Base != w || !o.Trouble.None() {
		t.Errorf("got %v, want the constant", o)
	}
	if uses := pass.LeafUses(w); len(uses) != 1 || uses[0].Node != nil {
		t.Errorf("got %v, want the output of the graph", uses)
	}
}

// A shape is no view of itself: Reshape consumes its second input.
func TestLeafUsesOfOtherInputs(t *testing.T) {
	g := ir.NewModel().Graph
	x, shape := g.NewValue("x"), g.AddConst("shape", ints(1, 6))
	y := g.Insert(nil, "Reshape", []*ir.Value{x, g.Insert(nil, "Identity", []*ir.Value{shape})})
	g.AddOutput(y)
	if uses := pass.LeafUses(shape); len(uses) != 1 || uses[0].Node != y.Producer() || uses[0].Index != 1 {
		t.Errorf("got %v, want input 1 of Reshape", uses)
	}
}
