package grad

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// contribs are nodes of operators that the engine runs in float32 alone.
var contribs = []probe{
	{tell: "packed", op: group, outputs: 3, in: []*ir.Array{values(1, 2, 5, 32), nil, nil, nil, nil, lengths(5, 3),
		integers32(nil, 5), cosines(6, 2), sines(6, 2)}, attrs: []*ir.Attr{
		ir.IntAttr("num_heads", 4), ir.IntAttr("kv_num_heads", 2), ir.IntAttr("do_rotary", 1),
	}},
	{tell: "window, softcap, empty past", op: group, outputs: 3, in: []*ir.Array{
		values(1, 1, 6, 16), values(2, 1, 6, 8), values(3, 1, 6, 8), values(4, 1, 2, 0, 4), values(5, 1, 2, 0, 4),
		lengths(6), integers32(nil, 6), cosines(9, 1), sines(9, 1), integers([]int64{1, 6}, 2, 3, 4, 5, 6, 7),
	}, attrs: []*ir.Attr{
		ir.IntAttr("num_heads", 4), ir.IntAttr("kv_num_heads", 2), ir.IntAttr("local_window_size", 3),
		ir.FloatAttr("softcap", 2), ir.FloatAttr("scale", 0.7), ir.IntAttr("do_rotary", 1),
		ir.IntAttr("rotary_interleaved", 1),
	}},
	{tell: "bias", op: group, in: []*ir.Array{values(1, 1, 3, 8), values(2, 1, 3, 8), values(3, 1, 3, 8), nil, nil,
		lengths(3), integers32(nil, 3), nil, nil, nil, floats(4, 1, 1, 3, 3)}, attrs: []*ir.Attr{
		ir.IntAttr("num_heads", 2), ir.IntAttr("kv_num_heads", 2),
	}},
	{tell: "rows", op: cross, in: []*ir.Array{values(1, 2, 3, 8), values(2, 2, 5, 8), values(3, 2, 5, 6),
		values(4, 22), integers32([]int64{2, 5}, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0)}, attrs: heads(2)},
	{tell: "lengths, past", op: cross, outputs: 3, in: []*ir.Array{
		values(1, 2, 3, 8), values(2, 2, 3, 8), values(3, 2, 3, 8), nil, integers32([]int64{2}, 5, 4),
		floats(9, 1, 2, 3, 5), values(4, 2, 2, 2, 4), values(5, 2, 2, 2, 4),
	}, attrs: append(heads(2), ir.IntAttr("unidirectional", 1))},
	{tell: "split", op: cross, in: []*ir.Array{values(1, 2, 3, 8), values(2, 2, 2, 5, 4), values(3, 2, 2, 5, 4),
		values(4, 24), integers32([]int64{2, 3, 5}, slices.Repeat([]int32{1, 1, 0}, 10)...)}, attrs: heads(2)},
	{tell: "packed", op: cross, in: []*ir.Array{values(1, 2, 3, 2, 3, 4)}, attrs: heads(2)},
	{tell: "packed keys", op: cross, in: []*ir.Array{values(1, 2, 3, 8), values(2, 2, 5, 2, 2, 4)}, attrs: heads(2)},
	{tell: "causal", op: self, outputs: 2, in: []*ir.Array{values(1, 2, 3, 4), values(2, 4, 24), values(3, 24),
		integers32([]int64{2, 5}, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0), values(4, 2, 2, 2, 2, 4)},
		attrs: append(heads(2), ir.IntAttr("unidirectional", 1))},
	{tell: "positions", op: self, in: []*ir.Array{values(1, 1, 2, 4), values(2, 4, 24), nil,
		integers32([]int64{1, 1, 4, 4}, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1), values(4, 2, 1, 2, 1, 4)},
		attrs: heads(2)},
	{op: ir.OpID{Domain: microsoft, Type: "FusedGemm"},
		in: []*ir.Array{values(1, 3, 4), values(2, 5, 4), values(3, 5)}, attrs: []*ir.Attr{
			ir.IntAttr("transB", 1), ir.StringAttr("activation", "LeakyRelu"), ir.FloatAttr("activation_alpha", 0.3),
		}},
	{tell: "sizes", op: self, in: []*ir.Array{values(1, 2, 3, 4), values(2, 4, 20), values(3, 20), nil, nil,
		floats(4, 2, 2, 3, 3)}, attrs: append(heads(2), ir.IntsAttr("qkv_hidden_sizes", 8, 8, 4))},
	{tell: "", op: onnx("RotaryEmbedding"), in: []*ir.Array{values(1, 2, 3, 4, 6), cosines(9, 2), sines(9, 2),
		integers([]int64{2, 4}, 0, 1, 2, 3, 5, 6, 7, 8)}, attrs: []*ir.Attr{ir.IntAttr("rotary_embedding_dim", 4)}},
	{tell: "interleaved, rows", op: onnx("RotaryEmbedding"),
		in:    []*ir.Array{values(1, 1, 4, 12), rows(cosines(4, 2)), rows(sines(4, 2))},
		attrs: []*ir.Attr{ir.IntAttr("interleaved", 1), ir.IntAttr("num_heads", 3)}},
	{tell: "", op: ir.OpID{Domain: microsoft, Type: "RotaryEmbedding"},
		in:    []*ir.Array{values(1, 2, 4, 12), integers([]int64{1}, 2), cosines(9, 2), sines(9, 2)},
		attrs: []*ir.Attr{ir.IntAttr("num_heads", 2), ir.IntAttr("rotary_embedding_dim", 4)}},
	{tell: "", op: ir.OpID{Domain: microsoft, Type: "EmbedLayerNormalization"}, in: []*ir.Array{
		integers32([]int64{2, 3}, 1, 4, 1, 0, 2, 1), integers32([]int64{2, 3}, 0, 1, 1, 0, 0, 1), values(1, 6, 4),
		values(2, 3, 4), values(3, 2, 4), values(4, 4), values(5, 4),
	}, outputs: 1},
	{tell: "all inputs", op: onnx("LSTM"), outputs: 3, in: []*ir.Array{
		values(1, 3, 2, 4), values(2, 2, 12, 4), values(3, 2, 12, 3), values(4, 2, 24), integers32([]int64{2}, 3, 2),
		values(5, 2, 2, 3), values(6, 2, 2, 3), values(7, 2, 9),
	}, attrs: []*ir.Attr{ir.IntAttr("hidden_size", 3), ir.StringAttr("direction", "bidirectional")}},
	{tell: "last state", op: onnx("GRU"), in: []*ir.Array{values(1, 2, 3, 4), values(2, 1, 9, 4), values(3, 1, 9, 3)},
		build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
			n := g.NewNode(onnx("GRU"), in, ir.IntAttr("hidden_size", 3), ir.IntAttr("layout", 1))
			n.SetOutputs(nil, g.NewValue("last"))
			g.Append(n)
			return n.Outputs[1]
		}},
}

// The graph that replaces an operator computes the same results, and its gradients agree with finite differences along
// them. They consist of rules that are checked in float64.
func TestContrib(t *testing.T) {
	for _, p := range contribs {
		t.Run(p.op.Type+" "+p.tell, p.checkSingle)
	}
}

func (p probe) checkSingle(t *testing.T) {
	p.single = true
	in, specs := p.inputs(), map[string]ir.Spec{}
	for name, a := range in {
		specs[name] = a.Spec()
	}
	tape, err := New(t.Context(), p.model(), Options{Inputs: specs})
	if err != nil {
		t.Fatal(err)
	}
	want, args := run(t, p.model(), in), maps.Clone(in)
	inputs, outputs := slices.Clone(tape.Graph().Inputs), slices.Clone(tape.Graph().Outputs)
	seeds, weights := map[*ir.Value]*ir.Value{}, map[string]*ir.Array{}
	for _, v := range inputs {
		tape.Want(v)
	}
	for i, y := range outputs {
		if !tape.Needs(y) {
			continue
		}
		seeds[y] = tape.Input("r", ir.Float, tape.Shape(y)...)
		weights[y.Name] = rounded(values(uint64(50+i), tape.Shape(y)...))
		args[seeds[y].Name] = weights[y.Name]
	}
	if err := tape.Backward(seeds); err != nil {
		t.Fatal(err)
	}
	compareStored(t, tape)
	for _, v := range inputs {
		if tape.Grad(v) != nil {
			tape.Graph().AddOutput(tape.Grad(v))
		}
	}
	got := run(t, tape.Model, args)
	for _, y := range outputs {
		if y.Name != p.model().Graph.Outputs[slices.Index(outputs, y)].Name {
			t.Errorf("output %q", y.Name)
		}
		if seeds[y] != nil {
			nearArray(t, y.Name, got[y.Name], want[y.Name])
		}
	}
	p.descends(t, tape, inputs, got, weights)
}

// descends compares the derivative along the gradient with central differences of the model.
func (p probe) descends(t *testing.T, tape *Tape, inputs []*ir.Value, got, weights map[string]*ir.Array) {
	s, squares := open(t, p.model()), 0.0
	moved := func(by float64) (loss float64) {
		in := map[string]*ir.Array{}
		for _, v := range inputs {
			a := p.inputs()[v.Name].Clone()
			if g := tape.Grad(v); g != nil {
				for i, d := range ir.View[float32](got[g.Name]) {
					ir.View[float32](a)[i] += float32(by * float64(d))
				}
			}
			in[v.Name] = a
		}
		out, err := s.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range weights {
			for i, w := range ir.View[float32](r) {
				loss += float64(w) * float64(ir.View[float32](out[name])[i])
			}
		}
		return loss
	}
	for _, v := range inputs {
		if g := tape.Grad(v); g != nil {
			for _, d := range ir.View[float32](got[g.Name]) {
				squares += float64(d) * float64(d)
			}
		} else if got := p.inputs()[v.Name]; got.Elems() > 0 {
			t.Errorf("input %q has no gradient", v.Name)
		}
	}
	h := 2e-3 / math.Sqrt(squares)
	if slope := (moved(h) - moved(-h)) / (2 * h); !(math.Abs(slope-squares) <= 2e-3*squares) {
		t.Errorf("the derivative along the gradient is %v, finite differences %v", squares, slope)
	}
}

func nearArray(t *testing.T, name string, got, want *ir.Array) {
	t.Helper()
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%s has shape %v, want %v", name, got.Shape, want.Shape)
	}
	for i, v := range ir.View[float32](want) {
		if is := ir.View[float32](got)[i]; !(math.Abs(float64(is-v)) <= 1e-5*(1+math.Abs(float64(v)))) {
			t.Fatalf("%s: element %d is %v, the engine computes %v", name, i, is, v)
		}
	}
}

var (
	group = ir.OpID{Domain: microsoft, Type: "GroupQueryAttention"}
	cross = ir.OpID{Domain: microsoft, Type: "MultiHeadAttention"}
	self  = ir.OpID{Domain: microsoft, Type: "Attention"}
)

func heads(n int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr("num_heads", n)} }

// floats are values in float32: a constant of the model.
func floats(seed uint64, shape ...int64) *ir.Array { return rounded(values(seed, shape...)) }

// rounded is a in float32.
func rounded(a *ir.Array) *ir.Array {
	b := ir.NewArray(ir.Float, a.Shape...)
	for i, v := range ir.View[float64](a) {
		ir.View[float32](b)[i] = float32(v)
	}
	return b
}

func cosines(positions, pairs int64) *ir.Array { return angles(math.Cos, positions, pairs) }

func sines(positions, pairs int64) *ir.Array { return angles(math.Sin, positions, pairs) }

func angles(f func(float64) float64, positions, pairs int64) *ir.Array {
	a := ir.NewArray(ir.Float, positions, pairs)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(f(float64(i/int(pairs)) / float64(1+i%int(pairs))))
	}
	return a
}

// rows adds an axis of one batch.
func rows(a *ir.Array) *ir.Array {
	return &ir.Array{DType: a.DType, Shape: slices.Insert(slices.Clone(a.Shape), 0, 1), Data: a.Data}
}

// lengths are the indices of the last token of each sequence.
func lengths(tokens ...int32) *ir.Array {
	for i := range tokens {
		tokens[i]--
	}
	return ir.ArrayOf(tokens, int64(len(tokens)))
}

func integers32(shape []int64, is ...int32) *ir.Array { return ir.ArrayOf(is, shape...) }
