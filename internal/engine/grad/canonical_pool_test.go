package grad

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// pooledRelu is MaxPool after Relu.
func pooledRelu(attrs ...*ir.Attr) probe {
	return probe{in: []*ir.Array{separated(1, 2, 3, 7, 8)}, build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m := maker{g}
		return m.Insert(nil, "MaxPool", []*ir.Value{m.op("Relu", in[0])},
			append(attrs, ir.IntsAttr("kernel_shape", 3, 2))...)
	}}
}

// Relu is moved after a pool if all windows meet the input.
func TestReluAfterPool(t *testing.T) {
	for _, c := range []struct {
		last  string
		attrs []*ir.Attr
	}{
		{"Relu", nil},
		{"Relu", []*ir.Attr{ir.IntsAttr("strides", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 0)}},
		{"MaxPoolKeep", []*ir.Attr{ir.IntsAttr("strides", 2, 2), ir.IntAttr("ceil_mode", 1)}},
		{"MaxPoolKeep", []*ir.Attr{ir.IntsAttr("dilations", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 1)}},
	} {
		p := pooledRelu(c.attrs...)
		nodes := slices.Collect(p.tape(t).Graph().Nodes())
		if last := nodes[len(nodes)-1].Op.Type; last != c.last || len(nodes) != 2 {
			t.Errorf("%v: the last of %d nodes is %s, want %s of 2", c.attrs, len(nodes), last, c.last)
		}
		p.check(t)
	}
}

// Option Plain keeps Relu before MaxPool, and its result instead of a mask.
func TestPlain(t *testing.T) {
	for _, plain := range []bool{false, true} {
		tape, err := New(t.Context(), residual(), Options{Inputs: map[string]ir.Spec{"x": {DType: ir.Float,
			Shape: []int64{4, 3, 18, 18}}}, BatchStatistics: true, Plain: plain})
		if err != nil {
			t.Fatal(err)
		}
		y := tape.Graph().Outputs[0]
		if err := tape.Backward(map[*ir.Value]*ir.Value{y: tape.Input("dy", ir.Float, tape.Shape(y)...)}); err != nil {
			t.Fatal(err)
		}
		for _, typ := range []string{"BatchNormPoolTrain", "ActivationMask"} {
			if got := slices.ContainsFunc(slices.Collect(tape.Graph().Nodes()),
				func(n *ir.Node) bool { return n.Op.Type == typ }); got == plain {
				t.Errorf("plain %t: %s in the graph is %t", plain, typ, got)
			}
		}
	}
}
