package partition

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// The operations of products, convolutions, recurrent and elementwise layers are counted by hand: two for each
// multiply-add.
func TestFLOPs(t *testing.T) {
	spec := func(shape ...int64) ir.Spec { return ir.Spec{DType: ir.Float, Shape: shape} }
	for _, c := range []struct {
		name   string
		op     string
		attrs  []*ir.Attr
		inputs []ir.Spec // the first is an activation, others are constants
		output ir.Spec
		want   int64
	}{
		{"MatMul", "MatMul", nil, []ir.Spec{spec(5, 7), spec(7, 3)}, spec(5, 3), 2 * 5 * 7 * 3},
		{"MatMul of a batch", "MatMul", nil, []ir.Spec{spec(2, 5, 7), spec(7, 3)}, spec(2, 5, 3), 2 * 2 * 5 * 7 * 3},
		{"Gemm", "Gemm", []*ir.Attr{ir.IntAttr("transB", 1)}, []ir.Spec{spec(5, 7), spec(3, 7)}, spec(5, 3), 2 * 5 * 7 * 3},
		{"Gemm of a transposed input", "Gemm", []*ir.Attr{ir.IntAttr("transA", 1)}, []ir.Spec{spec(7, 5), spec(7, 3)},
			spec(5, 3), 2 * 5 * 7 * 3},
		{"Conv", "Conv", nil, []ir.Spec{spec(2, 4, 8, 9), spec(6, 4, 3, 2)}, spec(2, 6, 6, 8),
			2 * (2 * 6 * 6 * 8) * (4 * 3 * 2)},
		{"Conv of groups", "Conv", []*ir.Attr{ir.IntAttr("group", 2)}, []ir.Spec{spec(1, 4, 8, 8), spec(6, 2, 3, 3)},
			spec(1, 6, 6, 6), 2 * (6 * 6 * 6) * (2 * 3 * 3)},
		{"ConvTranspose", "ConvTranspose", nil, []ir.Spec{spec(1, 4, 5, 5), spec(4, 6, 2, 2)}, spec(1, 6, 6, 6),
			2 * (4 * 5 * 5 * 6 * 2 * 2) / (6 * 6 * 6) * (6 * 6 * 6)},
		{"GRU", "GRU", []*ir.Attr{ir.IntAttr("hidden_size", 5)}, []ir.Spec{spec(7, 2, 3), spec(1, 15, 3), spec(1, 15, 5)},
			spec(7, 1, 2, 5), 2 * 7 * 2 * (15*3 + 15*5)},
		{"Relu", "Relu", nil, []ir.Spec{spec(5, 7)}, spec(5, 7), 5 * 7},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		types := &types{sizes: map[string]ir.Spec{}}
		var inputs []*ir.Value
		for i, s := range c.inputs {
			v := m.Graph.AddValue(string(rune('a' + i)))
			if i > 0 {
				v = m.Graph.AddConst(string(rune('a'+i)), &ir.Tensor{Spec: s, Source: make(ir.Mem, s.Bytes())})
			}
			types.sizes[v.Name] = s
			inputs = append(inputs, v)
		}
		out := m.Graph.Insert(nil, c.op, inputs, c.attrs...)
		types.sizes[out.Name] = c.output
		if got := types.flops(out.Producer()); got != c.want {
			t.Errorf("%s: %d operations, want %d", c.name, got, c.want)
		}
	}
}
