package prune_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// The sizes of the decoders: 3 positions after 4 past ones.
const (
	seq, past, total = 3, 4, 7
	heads, headSize  = 2, 8
	width            = heads * headSize
	vocabulary       = 5
)

// A decoder builds a model. Weights depend on their names only.
type decoder struct {
	*ir.Graph
	mask   *ir.Value
	cosine *ir.Value
}

func newDecoder() *decoder {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}, {Domain: "com.microsoft", Version: 1}}
	m.Graph.Name = "decoder"
	return &decoder{Graph: m.Graph}
}

func (d *decoder) input(name string, dt ir.DType, shape ...int64) *ir.Value {
	v := d.AddValue(name)
	v.Type = typeOf(dt, shape...)
	d.Inputs = append(d.Inputs, v)
	return v
}

func typeOf(dt ir.DType, shape ...int64) *ir.Type {
	t := &ir.Type{Elem: dt}
	for _, n := range shape {
		t.Shape = append(t.Shape, ir.Dim{N: n})
	}
	return t
}

// output makes v a graph output of that name.
func (d *decoder) output(v *ir.Value, name string, shape ...int64) {
	v.Name, v.Type = name, typeOf(ir.Float, shape...)
	d.AddOutput(v)
}

// weight is a constant whose values depend on its name.
func (d *decoder) weight(name string, shape ...int64) *ir.Value {
	seed := uint64(0)
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	random, spec := rand.New(rand.NewPCG(seed, 0)), ir.Spec{DType: ir.Float, Shape: shape}
	var b []byte
	for range spec.Elems() {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(random.NormFloat64()/2)))
	}
	return d.AddConst(name, &ir.Tensor{Spec: spec, Source: ir.Mem(b)})
}

// ints is a constant; a list of one number without shape is a scalar.
func (d *decoder) ints(shape []int64, values ...int64) *ir.Value {
	var b []byte
	for _, n := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return d.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: shape}, Source: ir.Mem(b)})
}

func (d *decoder) list(values ...int64) *ir.Value {
	return d.ints([]int64{int64(len(values))}, values...)
}

func (d *decoder) op(typ string, inputs ...*ir.Value) *ir.Value { return d.Insert(nil, typ, inputs) }

// contrib is a node of com.microsoft, whose outputs are given by their names, without a name for absent ones.
func (d *decoder) contrib(typ string, inputs []*ir.Value, outputs []string, attrs ...*ir.Attr) []*ir.Value {
	n := d.NewNode(ir.OpID{Domain: "com.microsoft", Type: typ}, inputs, attrs...)
	vs := make([]*ir.Value, len(outputs))
	for i, name := range outputs {
		if name != "" {
			vs[i] = d.NewValue(name)
		}
	}
	n.SetOutputs(vs...)
	d.Append(n)
	return vs
}

func (d *decoder) matmul(x *ir.Value, name string, in, out int64) *ir.Value {
	return d.op("MatMul", x, d.weight(name, in, out))
}

func (d *decoder) cast(x *ir.Value, to ir.DType) *ir.Value {
	return d.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(to)))
}

func (d *decoder) gather(x, at *ir.Value) *ir.Value { return d.op("Gather", x, at) }

func (d *decoder) transpose(x *ir.Value, perm ...int64) *ir.Value {
	return d.Insert(nil, "Transpose", []*ir.Value{x}, ir.IntsAttr("perm", perm...))
}

func (d *decoder) concat(axis int64, xs ...*ir.Value) *ir.Value {
	return d.Insert(nil, "Concat", xs, ir.IntAttr("axis", axis))
}

// heads is x by head: 1 × heads × seq × headSize.
func (d *decoder) heads(x *ir.Value) *ir.Value {
	return d.transpose(d.op("Reshape", x, d.list(1, -1, heads, headSize)), 0, 2, 1, 3)
}

// norm is a LayerNormalization.
func (d *decoder) norm(x *ir.Value, name string) *ir.Value {
	return d.Insert(nil, "LayerNormalization", []*ir.Value{x, d.weight(name+".w", width), d.weight(name+".b", width)},
		ir.FloatAttr("epsilon", 1e-5), ir.IntAttr("axis", -1))
}

// attention is softmax(q·kᵀ + mask)·v with the output projection.
func (d *decoder) attention(q, k, v *ir.Value, name string) *ir.Value {
	scores := d.op("Add", d.op("MatMul", q, d.transpose(k, 0, 1, 3, 2)), d.mask)
	x := d.op("MatMul", d.Insert(nil, "Softmax", []*ir.Value{scores}, ir.IntAttr("axis", -1)), v)
	return d.matmul(d.op("Reshape", d.transpose(x, 0, 2, 1, 3), d.list(1, -1, width)), name, width, width)
}

// mlp is two products and an activation; that of layer 9 is wider.
func (d *decoder) mlp(x *ir.Value, name string) *ir.Value {
	hidden := int64(2 * width)
	if name[0] == '9' {
		hidden += width
	}
	return d.matmul(d.op("Relu", d.matmul(x, name+".up", width, hidden)), name+".down", hidden, width)
}

// finish adds the head.
func (d *decoder) finish(x *ir.Value) *ir.Model {
	d.output(d.matmul(x, "head", width, vocabulary), "logits", 1, seq, vocabulary)
	logits := d.Outputs[len(d.Outputs)-1]
	d.SetOutputs(append([]*ir.Value{logits}, d.Outputs[:len(d.Outputs)-1]...)...)
	return d.Model()
}

// sums has the operators that add the residual, normalize, and also have the sum as output: the layout of
// onnxruntime-genai's builder.
func sums(layers []int) *ir.Model {
	d := newDecoder()
	ids, mask := d.input("input_ids", ir.Int64, 1, seq), d.input("attention_mask", ir.Int64, 1, total)
	length := d.cast(d.gather(d.op("Shape", mask), d.ints(nil, 1)), ir.Int32)
	last := d.op("Sub", d.cast(d.op("Shape", mask), ir.Int32), d.cast(d.list(1, 1), ir.Int32))
	last = d.op("Slice", last, d.list(1), d.list(2))
	x := d.gather(d.weight("embedding", vocabulary, width), ids)
	normalized := d.Insert(nil, "SimplifiedLayerNormalization",
		[]*ir.Value{x, d.weight(fmt.Sprintf("%d.norm1", layers[0]), width)}, ir.FloatAttr("epsilon", 1e-5),
		ir.IntAttr("axis", -1), ir.IntAttr("stash_type", 1))
	for i, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		key := d.input(fmt.Sprintf("past_key_values.%d.key", i), ir.Float, 1, 1, past, headSize)
		value := d.input(fmt.Sprintf("past_key_values.%d.value", i), ir.Float, 1, 1, past, headSize)
		q, k, v := d.matmul(normalized, name("q"), width, width), d.matmul(normalized, name("k"), width, headSize),
			d.matmul(normalized, name("v"), width, headSize)
		a := d.contrib("GroupQueryAttention", []*ir.Value{q, k, v, key, value, last, length}, []string{"a", "pk", "pv"},
			ir.IntAttr("num_heads", heads), ir.IntAttr("kv_num_heads", 1))
		d.output(a[1], fmt.Sprintf("present.%d.key", i), 1, 1, total, headSize)
		d.output(a[2], fmt.Sprintf("present.%d.value", i), 1, 1, total, headSize)
		s := d.contrib("SkipSimplifiedLayerNormalization", []*ir.Value{x, d.matmul(a[0], name("o"), width, width),
			d.weight(name("norm2"), width)}, []string{"n", "", "", "s"}, ir.FloatAttr("epsilon", 1e-5))
		next, outputs := "final.norm", []string{"n"}
		if i+1 < len(layers) {
			next, outputs = fmt.Sprintf("%d.norm1", layers[i+1]), []string{"n", "", "", "s"}
		}
		s = d.contrib("SkipSimplifiedLayerNormalization", []*ir.Value{s[3], d.mlp(s[0], name("mlp")), d.weight(next, width)},
			outputs, ir.FloatAttr("epsilon", 1e-5))
		normalized, x = s[0], s[len(s)-1]
	}
	return d.finish(normalized)
}

// separate has plain operators: past keys and values are concatenated with those of the positions, positions follow
// from the shape of one layer's past keys, and the mask and a rotary table, which all layers read, are computed in the
// middle of the first one.
func separate(pastName, presentName string, lengthOf func(layers int) int) func([]int) *ir.Model {
	return func(layers []int) *ir.Model {
		d := newDecoder()
		ids, mask := d.input("input_ids", ir.Int64, 1, seq), d.input("attention_mask", ir.Int64, 1, total)
		ports := map[string]*ir.Value{}
		for i := range layers {
			for _, part := range []string{"key", "value"} {
				ports[fmt.Sprint(i, part)] = d.input(fmt.Sprintf(pastName, i, part), ir.Float, 1, heads, past, headSize)
			}
		}
		x := d.gather(d.weight("embedding", vocabulary, width), ids)
		for i, id := range layers {
			name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
			n := d.norm(x, name("norm1"))
			if d.mask == nil {
				first := d.gather(d.op("Shape", ports[fmt.Sprint(lengthOf(len(layers)), "key")]), d.ints(nil, 2))
				end := d.op("Add", first, d.gather(d.op("Shape", ids), d.ints(nil, 1)))
				d.cosine = d.gather(d.weight("rotary", total, headSize), d.op("Range", first, end, d.ints(nil, 1)))
				hidden := d.op("Sub", d.weight("one", 1), d.cast(mask, ir.Float))
				d.mask = d.op("Unsqueeze", d.op("Mul", hidden, d.weight("mask", 1)), d.list(1, 2))
			}
			q := d.op("Mul", d.heads(d.matmul(n, name("q"), width, width)), d.cosine)
			k := d.concat(2, ports[fmt.Sprint(i, "key")], d.op("Mul", d.heads(d.matmul(n, name("k"), width, width)), d.cosine))
			v := d.concat(2, ports[fmt.Sprint(i, "value")], d.heads(d.matmul(n, name("v"), width, width)))
			d.output(k, fmt.Sprintf(presentName, i, "key"), 1, heads, total, headSize)
			d.output(v, fmt.Sprintf(presentName, i, "value"), 1, heads, total, headSize)
			x = d.op("Add", x, d.attention(q, k, v, name("o")))
			x = d.op("Add", d.mlp(d.norm(x, name("norm2")), name("mlp")), x)
		}
		return d.finish(d.norm(x, "final"))
	}
}

// together has keys and values in one tensor per layer, taken apart and put together by nodes besides the layers: GPT-2
// from PyTorch.
func together(layers []int) *ir.Model {
	d := newDecoder()
	ids := d.input("input_ids", ir.Int64, 1, seq)
	d.mask = d.weight("mask", 1)
	x := d.gather(d.weight("embedding", vocabulary, width), ids)
	for i, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		cache := d.input(fmt.Sprintf("past_%d", i), ir.Float, 2, 1, heads, past, headSize)
		key, value := d.gather(cache, d.ints(nil, 0)), d.gather(cache, d.ints(nil, 1))
		if i == 0 { // the length of the past
			first := d.gather(d.op("Shape", key), d.ints(nil, 2))
			x = d.op("Add", x, d.gather(d.weight("positions", total, width),
				d.op("Range", first, d.op("Add", first, d.gather(d.op("Shape", ids), d.ints(nil, 1))), d.ints(nil, 1))))
		}
		qkv := d.InsertN(nil, "Split", 3, []*ir.Value{d.matmul(d.norm(x, name("norm1")), name("qkv"), width, 3*width),
			d.list(width, width, width)}, ir.IntAttr("axis", 2))
		k, v := d.concat(2, key, d.heads(qkv[1])), d.concat(2, value, d.heads(qkv[2]))
		d.output(d.concat(0, d.op("Unsqueeze", k, d.list(0)), d.op("Unsqueeze", v, d.list(0))), fmt.Sprintf("present_%d", i),
			2, 1, heads, total, headSize)
		x = d.op("Add", d.attention(d.heads(qkv[0]), k, v, name("o")), x)
		x = d.op("Add", x, d.mlp(d.norm(x, name("norm2")), name("mlp")))
	}
	return d.finish(d.norm(x, "final"))
}

// embedded begins with an operator that normalizes the sum of embeddings for the first layer: GPT-2 from
// onnxruntime.transformers.
func embedded(layers []int) *ir.Model {
	d := newDecoder()
	ids := d.cast(d.input("input_ids", ir.Int64, 1, seq), ir.Int32)
	scale := func(name string) []*ir.Value {
		return []*ir.Value{d.weight(name+".w", width), d.weight(name+".b", width)}
	}
	epsilon := ir.FloatAttr("epsilon", 1e-5)
	norm1 := func(i int) []*ir.Value {
		if i == len(layers) {
			return scale("final")
		}
		return scale(fmt.Sprintf("%d.norm1", layers[i]))
	}
	e := d.contrib("EmbedLayerNormalization",
		slices.Concat([]*ir.Value{ids, nil, d.weight("embedding", vocabulary, width), d.weight("positions", total, width),
			nil}, norm1(0)), []string{"n", "m", "s"}, epsilon)
	n, x := e[0], e[2]
	for i, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		cache := d.input(fmt.Sprintf("past_%d", i), ir.Float, 2, 1, heads, past, headSize)
		a := d.contrib("Attention", []*ir.Value{n, d.weight(name("qkv"), width, 3*width), d.weight(name("qkv.b"), 3*width),
			nil, cache}, []string{"a", "p"}, ir.IntAttr("num_heads", heads), ir.IntAttr("unidirectional", 1))
		d.output(a[1], fmt.Sprintf("present_%d", i), 2, 1, heads, total, headSize)
		add := func(y *ir.Value, norm []*ir.Value, bias string, outputs ...string) (normalized, sum *ir.Value) {
			s := d.contrib("SkipLayerNormalization", slices.Concat([]*ir.Value{y, x}, norm, []*ir.Value{d.weight(bias, width)}),
				outputs, epsilon)
			return s[0], s[len(s)-1]
		}
		n, x = add(d.matmul(a[0], name("o"), width, width), scale(name("norm2")), name("o.b"), "n", "", "", "s")
		outputs := []string{"n", "", "", "s"}
		if i+1 == len(layers) {
			outputs = outputs[:1]
		}
		n, x = add(d.mlp(n, name("mlp")), norm1(i+1), name("mlp.b"), outputs...)
	}
	return d.finish(n)
}

// normalizedAfter is an encoder whose layers end with a normalization: BERT.
func normalizedAfter(layers []int) *ir.Model {
	d := newDecoder()
	d.mask = d.weight("mask", 1)
	x := d.norm(d.gather(d.weight("embedding", vocabulary, width), d.input("input_ids", ir.Int64, 1, seq)),
		"embedding.norm")
	for _, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		q, k, v := d.heads(d.matmul(x, name("q"), width, width)), d.heads(d.matmul(x, name("k"), width, width)),
			d.heads(d.matmul(x, name("v"), width, width))
		x = d.norm(d.op("Add", d.attention(q, k, v, name("o")), x), name("norm1"))
		x = d.norm(d.op("Add", d.mlp(x, name("mlp")), x), name("norm2"))
	}
	return d.finish(x)
}

// crossed also attends to an encoder's states, whose keys are an output of each layer in another order of axes.
func crossed(layers []int) *ir.Model {
	d := newDecoder()
	states := d.input("encoder_hidden_states", ir.Float, 1, past, width)
	d.mask = d.weight("mask", 1)
	x := d.gather(d.weight("embedding", vocabulary, width), d.input("input_ids", ir.Int64, 1, seq))
	for i, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		k, v := d.heads(d.matmul(states, name("k"), width, width)), d.heads(d.matmul(states, name("v"), width, width))
		d.output(d.transpose(k, 0, 2, 1, 3), fmt.Sprintf("present.%d.encoder.key", i), 1, past, heads, headSize)
		x = d.op("Add", x, d.attention(d.heads(d.matmul(d.norm(x, name("norm1")), name("q"), width, width)), k, v, name("o")))
		x = d.op("Add", x, d.mlp(d.norm(x, name("norm2")), name("mlp")))
	}
	return d.finish(d.norm(x, "final"))
}

// starting has another attention in layer 9, and a mask whose length is that of the embedded positions: GPT-2 and T5
// from Optimum.
func starting(layers []int) *ir.Model {
	d := newDecoder()
	embedded := d.gather(d.weight("embedding", vocabulary, width), d.input("input_ids", ir.Int64, 1, seq))
	d.mask = d.op("Mul", d.cast(d.gather(d.op("Shape", embedded), d.ints(nil, 1)), ir.Float), d.weight("mask", 1))
	x := d.op("Add", embedded, d.weight("positions", 1, seq, width))
	for _, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		n := d.norm(x, name("norm1"))
		v := d.heads(d.matmul(n, name("v"), width, width))
		if id == 9 {
			v = d.op("Tanh", v)
		}
		x = d.op("Add", x, d.attention(d.heads(d.matmul(n, name("q"), width, width)),
			d.heads(d.matmul(n, name("k"), width, width)), v, name("o")))
		x = d.op("Add", x, d.mlp(d.norm(x, name("norm2")), fmt.Sprintf("mlp.%d", id)))
	}
	return d.finish(d.norm(x, "final"))
}

// quantized has inputs of layers that are quantized with a scale of the layer, for two products.
func quantized(layers []int) *ir.Model {
	d := newDecoder()
	x := d.op("Relu", d.gather(d.weight("embedding", vocabulary, width), d.input("input_ids", ir.Int64, 1, seq)))
	zero := d.AddConst("zero", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8}, Source: ir.Mem{0}})
	for _, id := range layers {
		name := func(part string) string { return fmt.Sprintf("%d.%s", id, part) }
		scale := d.AddConst(name("scale"), &ir.Tensor{Spec: ir.Spec{DType: ir.Float},
			Source: ir.Mem(binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.01*float32(id+1))))})
		q := d.op("QuantizeLinear", x, scale, zero)
		a := d.matmul(d.op("DequantizeLinear", q, scale, zero), name("a"), width, width)
		if id == 9 {
			a = d.op("Tanh", a)
		}
		x = d.op("Relu", d.op("Add", a, d.matmul(d.op("DequantizeLinear", q, scale, zero), name("b"), width, width)))
	}
	return d.finish(x)
}

// A model without some layers is the one that is built without them.
func TestModelsWithoutLayersAreThoseBuiltWithoutThem(t *testing.T) {
	w := conform.Start(t)
	for name, build := range map[string]func([]int) *ir.Model{
		"sums":      sums,
		"separate":  separate("past_key_values.%d.%s", "present.%d.%s", func(int) int { return 0 }),
		"caches":    separate("cache_%d_%s_in", "cache_%d_%s_out", func(n int) int { return n - 1 }),
		"crossed":   crossed,
		"starting":  starting,
		"quantized": quantized,
		"together":  together,
		"embedded":  embedded,
		"afterward": normalizedAfter,
	} {
		for _, c := range []struct {
			layers []int
			amount float64
			kept   []int
		}{
			{[]int{0, 1, 2, 3}, 0.5, []int{0, 3}},
			{[]int{0, 1}, 0.5, []int{1}},
			{[]int{0, 1, 2, 3, 4}, 0.4, []int{0, 2, 4}},
			{[]int{0, 1, 2}, 1, []int{2}},
			{[]int{9, 0, 1, 2}, 0.4, []int{9, 0, 2}},
			{[]int{0, 1, 2, 9}, 0.4, []int{0, 2, 9}},
		} {
			t.Run(fmt.Sprint(name, c.layers), func(t *testing.T) {
				got, want := withoutLayers(t, build(c.layers), c.amount), saved(t, build(c.kept), nil)
				if w.Check(want, true) == nil {
					if err := w.Check(got, true); err != nil {
						t.Errorf("not valid: %v", err)
					}
				}
				outputs, err := w.Compare(want, got, conform.Options{Random: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range outputs {
					if !o.Equal {
						t.Errorf("%s: %.1f dB", o.Name, o.SQNR)
					}
				}
			})
		}
	}
}

// withoutLayers is the path of m without the given fraction of its layers.
func withoutLayers(t *testing.T, m *ir.Model, amount float64) string {
	t.Helper()
	eval := ir.NewEval(t.TempDir())
	t.Cleanup(func() { eval.Close() })
	if _, err := pass.Run(t.Context(), m, eval, pass.Environment{Workers: 1},
		[]pass.Options{&prune.Layers{Amount: amount}}); err != nil {
		t.Fatal(err)
	}
	return saved(t, m, eval)
}

func saved(t *testing.T, m *ir.Model, eval *ir.Eval) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{Workers: 1, Memory: 1 << 20, Eval: eval}); err != nil {
		t.Fatal(err)
	}
	return path
}
