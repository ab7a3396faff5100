package weights

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A product whose output has no name is valid, and nothing consumes it.
func TestProductWithoutOutput(t *testing.T) {
	g := ir.NewModel().Graph
	x := g.NewValue("x")
	w := g.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2, 2}}, Source: ir.Floats(1, 2, 3, 4)})
	n := g.NewNode(ir.OpID{Type: "MatMul"}, []*ir.Value{x, w})
	n.SetOutputs(nil)
	g.Append(n)
	if c := ConsumerAt(n, false); c != nil {
		t.Errorf("%+v, want none", c)
	}
	n.SetOutputs(g.NewValue("y"))
	if c := ConsumerAt(n, false); c == nil {
		t.Error("no consumer, want the product")
	}
}
