package grad

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestDropoutGradient(t *testing.T) {
	step := ir.ArrayOf([]int64{3}, 1)
	checkAll(t, []probe{
		{op: ir.OpID{Domain: own, Type: "SeededDropout"}, in: []*ir.Array{values(1, 4, 5), step}},
		{op: ir.OpID{Domain: own, Type: "SeededDropout"}, in: []*ir.Array{values(1, 40), step}, attrs: []*ir.Attr{{Name: "ratio", Type: ir.AttrFloat, F: 0.2}, ir.IntAttr("seed", 7)}},
	})
}

// What comes back is what went out: rounding is taken for the identity.
func TestFakeQuantPassesGradients(t *testing.T) {
	for _, typ := range []string{"FakeQuantWeight", "FakeQuantDynamic"} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 24}, {Domain: own, Version: 1}}
		x := m.Graph.AddValue("x")
		spec := ir.Spec{DType: ir.Float, Shape: []int64{2, 3}}
		x.Type = typeOf(spec)
		m.Graph.Inputs = []*ir.Value{x}
		n := m.Graph.NewNode(ir.OpID{Domain: own, Type: typ}, []*ir.Value{x})
		n.SetOutputs(m.Graph.NewValue("y"))
		m.Graph.Append(n)
		m.Graph.AddOutput(n.Outputs[0])
		tape, err := New(t.Context(), m, Options{Inputs: map[string]ir.Spec{"x": spec}})
		if err != nil {
			t.Fatal(err)
		}
		in := tape.Graph().Inputs[0]
		tape.Want(in)
		seed := tape.Graph().NewValue("seed")
		if err := tape.Backward(map[*ir.Value]*ir.Value{tape.Graph().Outputs[0]: seed}); err != nil {
			t.Fatal(err)
		}
		if tape.Grad(in) != seed {
			t.Errorf("%s: the gradient of the input is not that of the output", typ)
		}
	}
}
