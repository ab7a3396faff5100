package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// The forward value is quantized; the gradient passes unchanged to the unquantized value alone.
func TestStraightThrough(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 24}, {Domain: own, Version: 1}}
	g, spec := m.Graph, ir.Spec{DType: ir.Float, Shape: []int64{2, 3}}
	for _, name := range []string{"q", "x"} {
		v := g.AddValue(name)
		v.Type = typeOf(spec)
		g.Inputs = append(g.Inputs, v)
	}
	n := g.NewNode(ir.OpID{Domain: own, Type: "StraightThrough"}, g.Inputs)
	n.SetOutputs(g.NewValue("y"))
	g.Append(n)
	g.AddOutput(n.Outputs[0])
	tape, err := New(t.Context(), m, Options{Inputs: map[string]ir.Spec{"q": spec, "x": spec}})
	if err != nil {
		t.Fatal(err)
	}
	q, x := tape.Graph().Inputs[0], tape.Graph().Inputs[1]
	tape.Want(q)
	tape.Want(x)
	seed := tape.Graph().NewValue("seed")
	if err := tape.Backward(map[*ir.Value]*ir.Value{tape.Graph().Outputs[0]: seed}); err != nil {
		t.Fatal(err)
	}
	if tape.Grad(x) != seed || tape.Grad(q) != nil {
		t.Errorf("gradient %v of the value, want %v; %v of the quantized value, want none", tape.Grad(x), seed,
			tape.Grad(q))
	}
}
