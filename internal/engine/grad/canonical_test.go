package grad

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A maker adds nodes and constants.
type maker struct{ *ir.Graph }

func (m maker) op(typ string, in ...*ir.Value) *ir.Value { return m.Insert(nil, typ, in) }

// number is a constant of the type of the graph's input.
func (m maker) number(x float64) *ir.Value {
	dt := m.Inputs[0].Type.Elem
	return m.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: scalarPayload(dt, x)})
}

func (m maker) mean(x *ir.Value) *ir.Value {
	return m.Insert(nil, "ReduceMean", []*ir.Value{x}, ir.IntsAttr("axes", -1))
}

func (m maker) transpose(x *ir.Value, perm ...int64) *ir.Value {
	return m.Insert(nil, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", perm...))
}

// norm is the decomposition of LayerNormalization below opset 17.
func norm(square func(m maker, d *ir.Value) *ir.Value, twice bool) func(*ir.Graph, []*ir.Value) *ir.Value {
	return func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m, x := maker{g}, in[0]
		d := m.op("Sub", x, m.mean(x))
		below := d
		if twice {
			below = m.op("Sub", x, m.mean(x))
		}
		deviation := m.op("Sqrt", m.op("Add", m.mean(square(m, below)), m.number(1e-5)))
		y := m.op("Mul", m.op("Div", d, deviation), in[1])
		if len(in) == 2 {
			return y
		}
		return m.op("Add", in[2], y)
	}
}

func squareByPow(m maker, d *ir.Value) *ir.Value { return m.op("Pow", d, m.number(2)) }

func squareByMul(m maker, d *ir.Value) *ir.Value { return m.op("Mul", d, d) }

// rmsNorm is the decomposition of RMSNormalization, with the product of x and the inverse root, or the quotient.
func rmsNorm(scaled func(m maker, x, meanSquare *ir.Value) *ir.Value) func(*ir.Graph, []*ir.Value) *ir.Value {
	return func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m, x := maker{g}, in[0]
		y := scaled(m, x, m.op("Add", m.mean(m.op("Pow", x, m.number(2))), m.number(1e-5)))
		if len(in) == 2 {
			y = m.op("Mul", in[1], y)
		}
		return y
	}
}

// rotated is the rotation of halves as exporters write it: x·cos + concat(-x₂, x₁)·sin.
func rotated(g *ir.Graph, in []*ir.Value) *ir.Value {
	m, x := maker{g}, in[0]
	part := func(from, to int64) *ir.Value {
		return m.Insert(nil, "Slice", []*ir.Value{x}, ir.IntsAttr("starts", from), ir.IntsAttr("ends", to),
			ir.IntsAttr("axes", -1))
	}
	half := m.Insert(nil, "Concat", []*ir.Value{m.op("Neg", part(2, 4)), part(0, 2)}, ir.IntAttr("axis", -1))
	angle := func(f func(float64) float64) *ir.Value {
		a := ir.NewArray(ir.Double, 3, 4)
		for i := range ir.View[float64](a) {
			ir.View[float64](a)[i] = f(float64(i/4) / float64(1+i%2))
		}
		return g.AddConst("angle", &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
	}
	return m.op("Add", m.op("Mul", x, angle(math.Cos)), m.op("Mul", half, angle(math.Sin)))
}

// erf is 1 + erf(x/√2).
func erf(m maker, x *ir.Value) *ir.Value {
	return m.op("Add", m.op("Erf", m.op("Div", x, m.number(math.Sqrt2))), m.number(1))
}

// tanh is 1 + tanh(√(2/π)·(x + 0.044715·x³)).
func tanh(m maker, x *ir.Value) *ir.Value {
	cubic := m.op("Mul", m.op("Pow", x, m.number(3)), m.number(0.044715))
	inner := m.op("Mul", m.op("Add", x, cubic), m.number(math.Sqrt(2/math.Pi)))
	return m.op("Add", m.op("Tanh", inner), m.number(1))
}

// attend is attention with operands and result of shape [batch, tokens, heads, elements].
func attend(scale bool, mask *ir.Array) func(*ir.Graph, []*ir.Value) *ir.Value {
	return func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m := maker{g}
		q, k, v := m.transpose(in[0], 0, 2, 1, 3), m.transpose(in[1], 0, 2, 3, 1), m.transpose(in[2], 0, 2, 1, 3)
		s := m.op("MatMul", q, k)
		if scale {
			s = m.op("Div", s, m.number(2))
		}
		if mask != nil {
			s = m.op("Add", s, g.AddConst("mask", &ir.Tensor{Spec: mask.Spec(), Source: ir.Mem(mask.Data)}))
		}
		return m.transpose(m.op("MatMul", m.op("Softmax", s), v), 0, 2, 1, 3)
	}
}

// A form is a pattern of exporters, and the operator that replaces it.
type form struct {
	to string
	probe
}

var forms = []form{
	{"LayerNormalization", probe{tell: "pow", in: []*ir.Array{values(1, 2, 3, 4), values(2, 4), values(3, 4)},
		opset: 17, build: norm(squareByPow, false)}},
	{"LayerNormalization", probe{tell: "mul", in: []*ir.Array{values(1, 3, 4), values(2, 4), values(3, 4)}, opset: 17,
		build: norm(squareByMul, true)}},
	{"LayerNormalization", probe{tell: "no bias", in: []*ir.Array{values(1, 3, 4), values(2, 4)}, opset: 17,
		build: norm(squareByMul, false)}},
	{"Gelu", probe{tell: "y·x·½", in: []*ir.Array{values(1, 3, 4)}, build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m := maker{g}
		return m.op("Mul", m.op("Mul", in[0], erf(m, in[0])), m.number(0.5))
	}}},
	{"Gelu", probe{tell: "½·x·y", in: []*ir.Array{values(1, 3, 4)}, build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m := maker{g}
		return m.op("Mul", m.op("Mul", in[0], m.number(0.5)), erf(m, in[0]))
	}}},
	{"Gelu", probe{tell: "tanh", in: []*ir.Array{values(1, 3, 4)}, build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
		m := maker{g}
		return m.op("Mul", m.op("Mul", m.number(0.5), in[0]), tanh(m, in[0]))
	}}},
	{"AttentionKeep", probe{tell: "plain", in: []*ir.Array{values(1, 2, 3, 2, 4), values(2, 2, 5, 2, 4),
		values(3, 2, 5, 2, 3)}, build: attend(false, nil)}},
	{"AttentionKeep", probe{tell: "scaled", in: []*ir.Array{values(1, 2, 3, 2, 4), values(2, 2, 5, 2, 4),
		values(3, 2, 5, 2, 3)}, build: attend(true, nil)}},
	{"AttentionKeep", probe{tell: "masked", in: []*ir.Array{values(1, 2, 3, 2, 4), values(2, 2, 5, 2, 4),
		values(3, 2, 5, 2, 3)}, build: attend(true, hiding(values(4, 2, 1, 3, 5)))}},
	{"AttentionKeep", probe{tell: "keys masked", in: []*ir.Array{values(1, 2, 3, 2, 4), values(2, 2, 5, 2, 4),
		values(3, 2, 5, 2, 3)}, build: attend(true, hiding(values(4, 5)))}},
	{"AttentionKeep", probe{tell: "queries masked",
		in:    []*ir.Array{values(1, 2, 3, 2, 4), values(2, 2, 5, 2, 4), values(3, 2, 5, 2, 3)},
		build: attend(true, values(4, 2, 3, 1))}},
	{"AttentionKeep", probe{tell: "of ONNX", op: onnx("Attention"),
		in: []*ir.Array{values(1, 2, 2, 3, 4), values(2, 2, 2, 5, 4), values(3, 2, 2, 5, 3)}}},
	{"AttentionKeep", probe{tell: "of ONNX, causal, 3 axes", op: onnx("Attention"),
		in: []*ir.Array{values(1, 2, 3, 8), values(2, 2, 3, 8), values(3, 2, 3, 4)}, attrs: []*ir.Attr{
			ir.IntAttr("q_num_heads", 2), ir.IntAttr("kv_num_heads", 2), ir.IntAttr("is_causal", 1),
			ir.FloatAttr("scale", 0.3),
		}}},
	{"RMSNormalization", probe{tell: "div", in: []*ir.Array{values(1, 2, 3, 4), values(2, 4)}, opset: 17,
		build: rmsNorm(func(m maker, x, square *ir.Value) *ir.Value {
			return m.op("Div", x, m.op("Sqrt", square))
		})}},
	{"RMSNormalization", probe{tell: "reciprocal", in: []*ir.Array{values(1, 3, 4), values(2, 4)}, opset: 17,
		build: rmsNorm(func(m maker, x, square *ir.Value) *ir.Value {
			return m.op("Mul", m.op("Reciprocal", m.op("Sqrt", square)), x)
		})}},
	{"RMSNormalization", probe{tell: "rsqrt as division", in: []*ir.Array{values(1, 3, 4), values(2, 4)}, opset: 17,
		build: rmsNorm(func(m maker, x, square *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Div", m.number(1), m.op("Sqrt", square)))
		})}},
	{"RMSNormalization", probe{tell: "power, no scale", in: []*ir.Array{values(1, 3, 4)}, opset: 17,
		build: rmsNorm(func(m maker, x, square *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Pow", square, m.number(-0.5)))
		})}},
	{"Concat", probe{tell: "rotary by halves", in: []*ir.Array{values(1, 2, 3, 4)}, opset: 9, build: rotated}},
	{"AttentionKeep", probe{tell: "repeated heads",
		in: []*ir.Array{values(1, 2, 3, 6, 4), values(2, 2, 2, 5, 4), values(3, 2, 2, 5, 4)}, build: repeat}},
	{"AttentionKeep", probe{tell: "of ONNX, grouped", op: onnx("Attention"),
		in: []*ir.Array{values(1, 2, 4, 3, 4), values(2, 2, 2, 5, 4), values(3, 2, 2, 5, 3)}}},
	{"AttentionKeep", probe{tell: "of ONNX, grouped, causal, 3 axes, softcap", op: onnx("Attention"),
		in: []*ir.Array{values(1, 2, 5, 12), values(2, 2, 5, 6), values(3, 2, 5, 4)}, attrs: []*ir.Attr{
			ir.IntAttr("q_num_heads", 4), ir.IntAttr("kv_num_heads", 2), ir.IntAttr("is_causal", 1),
			ir.FloatAttr("softcap", 1.5),
		}}},
	{"AttentionKeep", probe{tell: "of ONNX, grouped, mask of heads", op: onnx("Attention"),
		in: []*ir.Array{values(1, 2, 4, 2, 4), values(2, 2, 2, 3, 4), values(3, 2, 2, 3, 3), flags(2, 4, 2, 3)}}},
	{"AttentionKeep", probe{tell: "of ONNX, window", opset: 25, op: onnx("Attention"),
		in: []*ir.Array{values(1, 1, 2, 5, 4), values(2, 1, 2, 5, 4), values(3, 1, 2, 5, 3)}, attrs: []*ir.Attr{
			ir.IntAttr("left_window_size", 1), ir.IntAttr("right_window_size", 0),
		}}},
	{"AttentionKeep", probe{tell: "of ONNX, past, causal", outputs: 3, op: onnx("Attention"), in: []*ir.Array{
		values(1, 1, 2, 3, 4), values(2, 1, 1, 3, 4), values(3, 1, 1, 3, 3), nil, values(4, 1, 1, 2, 4),
		values(5, 1, 1, 2, 3),
	}, attrs: []*ir.Attr{ir.IntAttr("is_causal", 1)}}},
	{"AttentionKeep", probe{tell: "of ONNX, one query without keys", op: onnx("Attention"), in: []*ir.Array{
		values(1, 1, 1, 2, 4), values(2, 1, 1, 3, 4), values(3, 1, 1, 3, 4),
		ir.ArrayOf([]bool{true, false, true, false, false, false}, 2, 3),
	}}},
	{"FusedMatMul", probe{tell: "weight by outputs", in: []*ir.Array{values(1, 2, 3, 4), values(2, 5, 4)},
		build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
			m := maker{g}
			return m.op("MatMul", in[0], m.transpose(in[1], 1, 0))
		}}},
	{"FusedMatMul", probe{tell: "both", in: []*ir.Array{values(1, 2, 3, 4), values(2, 2, 5, 3)},
		build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
			m := maker{g}
			return m.op("MatMul", m.transpose(in[0], 0, 2, 1), m.transpose(in[1], 0, 2, 1))
		}}},
}

// flags is a boolean tensor with some elements that are false.
func flags(shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Bool, shape...)
	for i := range ir.View[bool](a) {
		ir.View[bool](a)[i] = i%3 != 1
	}
	return a
}

// repeat is grouped-query attention as exporters write it: heads of keys and values are repeated. q has the shape
// [batch, tokens, heads, size].
func repeat(g *ir.Graph, in []*ir.Value) *ir.Value {
	m := maker{g}
	ints := func(is ...int64) *ir.Value {
		return g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
			Source: ir.Ints(is...)})
	}
	wide := func(x *ir.Value) *ir.Value {
		x = m.op("Expand", m.op("Unsqueeze", x, ints(2)), ints(2, 2, 3, 5, 4))
		return m.op("Reshape", x, ints(2, 6, 5, 4))
	}
	s := m.op("MatMul", m.transpose(in[0], 0, 2, 1, 3), m.transpose(wide(in[1]), 0, 1, 3, 2))
	mask := hiding(values(4, 2, 6, 1, 5))
	s = m.op("Add", s, g.AddConst("mask", &ir.Tensor{Spec: mask.Spec(), Source: ir.Mem(mask.Data)}))
	return m.transpose(m.op("MatMul", m.op("Softmax", s), wide(in[2])), 0, 2, 1, 3)
}

// Repeated keys and values are not stored.
func TestRepeatedHeadsAreGroups(t *testing.T) {
	for n := range (probe{in: []*ir.Array{values(1, 2, 3, 6, 4), values(2, 2, 2, 5, 4), values(3, 2, 2, 5, 4)},
		build: repeat}).tape(t).Graph().Nodes() {
		if n.Op.Type == "Expand" {
			t.Errorf("%s is left", n.Place())
		}
	}
}

// hiding makes the second element mask a key.
func hiding(mask *ir.Array) *ir.Array {
	ir.View[float64](mask)[1] = math.Inf(-1)
	return mask
}

// Patterns of exporters are fused, and the gradients are correct.
func TestCanonical(t *testing.T) {
	for _, f := range slices.Concat(forms, activationForms) {
		t.Run(f.to+" "+f.tell, func(t *testing.T) {
			tape := f.tape(t)
			if !slices.ContainsFunc(slices.Collect(tape.Graph().Nodes()),
				func(n *ir.Node) bool { return n.Op.Type == f.to }) {
				t.Errorf("there is no %s", f.to)
			}
			if out := tape.Graph().Outputs[0].Name; out != f.model().Graph.Outputs[0].Name {
				t.Errorf("the output is %q", out)
			}
			f.check(t)
		})
	}
}

// tape is the probe's forward graph.
func (p probe) tape(t *testing.T) *Tape {
	t.Helper()
	specs := map[string]ir.Spec{}
	for name, a := range p.inputs() {
		specs[name] = a.Spec()
	}
	tape, err := New(t.Context(), p.model(), Options{Inputs: specs})
	if err != nil {
		t.Fatal(err)
	}
	return tape
}
