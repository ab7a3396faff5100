package precision_test

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/precision"
)

func matrix(g *ir.Graph, name string) *ir.Value {
	return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: []int64{4, 4}},
		Source: make(ir.Mem, 64)})
}

func floats(g *ir.Graph, name string) *ir.Value {
	v := g.NewValue(name)
	v.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}, {N: 4}}}
	return v
}

// Inputs and outputs of the model keep their names and types, also where a Cast computes them.
func TestOutputsKeepNameAndType(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := floats(g, "x")
	g.Inputs = append(g.Inputs, x)
	y := g.Insert(nil, "MatMul", []*ir.Value{x, matrix(g, "w")})
	y.Name, y.Type = "y", x.Type
	g.AddOutput(y)
	precision.New(m, precision.Options{To: ir.Float16, KeepIO: true}).Apply(m, nil)
	if x.Type.Elem != ir.Float || g.First().Op.Type != "Cast" || g.First().Input(0) != x {
		t.Errorf("input %s %v, first node %s", x.Name, x.Type, g.First().Op)
	}
	out := g.Outputs[0]
	if out.Name != "y" || out.Type.Elem != ir.Float || out.Producer().Op.Type != "Cast" ||
		out.Producer().Input(0).Producer().Op.Type != "MatMul" {
		t.Errorf("output %s %v of %s", out.Name, out.Type, out.Producer().Op)
	}
}

// The states of a Scan have the type of their initial values in its body, and outside of it.
func TestStatesOfSubgraphs(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	x := floats(g, "x")
	g.Inputs = append(g.Inputs, x)
	first := g.Insert(nil, "MatMul", []*ir.Value{x, matrix(g, "w")})
	first.Type = x.Type

	last := g.Insert(nil, "Scan", []*ir.Value{first, first}, ir.IntAttr("num_scan_inputs", 1))
	last.Type = x.Type
	scan := last.Producer()
	body := ir.NewSubgraph(g, scan)
	state, row := floats(body, "state"), floats(body, "row")
	row.Type.Shape = row.Type.Shape[1:]
	body.Inputs = append(body.Inputs, state, row)
	next := body.Insert(nil, "Add", []*ir.Value{body.Insert(nil, "Relu", []*ir.Value{state}), row})
	next.Type = x.Type
	body.AddOutput(next)
	scan.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: body})
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{last, matrix(g, "v")}))

	precision.New(m, precision.Options{To: ir.Float16, KeepIO: true}).Apply(m, nil)
	for name, v := range map[string]*ir.Value{"initial": first, "in the body": state, "next": next, "last": last} {
		if v.Type.Elem != ir.Float16 {
			t.Errorf("the %s state is %s", name, v.Type.Elem)
		}
	}
	for n := range body.Nodes() {
		if n.Op.Type == "Cast" {
			t.Error("the body has a Cast")
		}
	}
}

// A state that starts in float16 does so whatever the type of what is scanned, and the other way round.
func TestStatesAndScannedValuesOfDifferentTypes(t *testing.T) {
	for _, narrowState := range []bool{false, true} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		g := m.Graph
		x := floats(g, "x")
		g.Inputs = append(g.Inputs, x)
		product := g.Insert(nil, "MatMul", []*ir.Value{x, matrix(g, "w")})
		product.Type = x.Type
		in, want := []*ir.Value{x, product}, ir.Float
		if narrowState {
			in, want = []*ir.Value{product, x}, ir.Float16
		}
		vs := g.InsertN(nil, "Scan", 2, in, ir.IntAttr("num_scan_inputs", 1))
		last, all := vs[0], vs[1]
		last.Type, all.Type = x.Type, x.Type
		scan := last.Producer()
		body := ir.NewSubgraph(g, scan)
		state, row := floats(body, "state"), floats(body, "row")
		body.Inputs = append(body.Inputs, state, row)
		next := body.Insert(nil, "Add", []*ir.Value{state, row})
		element := body.Insert(nil, "Identity", []*ir.Value{next})
		next.Type, element.Type = x.Type, x.Type
		body.AddOutput(next)
		body.AddOutput(element)
		scan.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: body})
		g.AddOutput(last)
		g.AddOutput(all)

		precision.New(m, precision.Options{To: ir.Float16, KeepIO: true}).Apply(m, nil)
		if state.Type.Elem != want || body.Outputs[0].Type.Elem != want || last.Type.Elem != want {
			t.Errorf("the state is %s in the body, %s after an iteration and %s at the end; its initial value is %s",
				state.Type.Elem, body.Outputs[0].Type.Elem, last.Type.Elem, want)
		}
		if body.Outputs[1].Type.Elem != all.Type.Elem {
			t.Errorf("an element is %s, and all of them %s", body.Outputs[1].Type.Elem, all.Type.Elem)
		}
	}
}
