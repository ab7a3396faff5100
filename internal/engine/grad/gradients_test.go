package grad

import (
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Nodes of the backward pass are named after those of the forward pass, also those that replace others.
func TestNamesOfBackward(t *testing.T) {
	tape, _ := chain(t, func(g *ir.Graph, v *ir.Value) *ir.Value {
		v.Producer().Name = "conv"
		v = g.Insert(nil, "Conv", []*ir.Value{v, weight(g, 8, 8, 1, 1), weight(g, 8)})
		v.Producer().Name = "conv2"
		v = g.Insert(nil, "Relu", []*ir.Value{v}) // its gradient is masked
		v.Producer().Name = "relu"
		return g.Insert(nil, "Add", []*ir.Value{g.Insert(nil, "Sqrt", []*ir.Value{v}), v})
	})
	a := tape.Activations()
	a.Replace(tape.forward[0].Outputs[0], func(v *ir.Value) *ir.Node {
		return tape.New(ir.OpID{Domain: own, Type: "StoreHalf"}, []*ir.Value{v})
	}, func(v *ir.Value) *ir.Node {
		return tape.New(ir.OpID{Domain: own, Type: "LoadHalf"}, []*ir.Value{v})
	})
	var got []string
	for n := range tape.Graph().Nodes() {
		if !slices.Contains(tape.forward, n) {
			got = append(got, n.Op.Type+": "+n.Name)
		}
		if n.Op.Type == "MaskedGrad" && tape.gradients.layers[n] == nil {
			t.Error("a masked gradient has no layer")
		}
	}
	for _, want := range []string{
		"StoreHalf: storage of conv", "LoadHalf: restoration of conv", "MaskedGrad: backward of relu (input)",
		"ConvGrad: backward of conv2 (input, weights)", "ConvGrad: backward of conv (weights)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no node %q in %q", want, got)
		}
	}
}
