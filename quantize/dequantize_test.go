package quantize

import (
	"context"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// DequantizeLinear has an axis and explicit zero points for scales by channel only, and an Add after it becomes Sum
// where ONNX Runtime would fuse the product with the Add.
func TestDequantizeLinearOfProducts(t *testing.T) {
	for _, c := range []struct {
		options []string
		inputs  int
		axis    bool
	}{{nil, 3, true}, {[]string{"per-tensor"}, 2, false}, {[]string{"per-tensor", "asymmetric"}, 3, false}} {
		b, e := newBuilder(t, 21), ir.NewEval(t.TempDir())
		x := b.node("MatMul", []*ir.Value{b.input("x", 4, 64), b.weight("w", 64, 64)})
		b.output("y", b.node("Relu", []*ir.Value{b.node("Add", []*ir.Value{x, b.weight("b", 64)})}), 4, 64)
		v := variant{WeightInt8{}.Method(), c.options}.on("ort")
		_, err := pass.Run(context.Background(), b.Model(), e, pass.Environment{Workers: 1, Target: v.target(t)},
			[]pass.Options{v.step(t)})
		if err != nil {
			t.Fatal(err)
		}
		ops := map[string]int{}
		for n := range b.Nodes() {
			ops[n.Op.Type]++
			if n.Op.Type == "DequantizeLinear" && (len(n.Inputs()) != c.inputs || (n.Attr("axis") != nil) != c.axis) {
				t.Errorf("%v: %d inputs, axis %v", c.options, len(n.Inputs()), n.Attr("axis"))
			}
		}
		if ops["DequantizeLinear"] != 1 || ops["Sum"] != 1 || ops["Add"] > 0 {
			t.Errorf("%v: operators %v", c.options, ops)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
