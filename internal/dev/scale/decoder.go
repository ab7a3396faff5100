package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/ir"
	"github.com/x448/float16"
)

// Sizes of a layer of a decoder of 14 B parameters.
const (
	hidden     = 5120
	mlp        = 13824
	heads      = 40
	keyHeads   = 8
	headSize   = 128
	vocabulary = 152064
	positions  = 4096
)

// decoder is a language model in float16 as onnxruntime-genai's builder writes them, with n layers: 48 are 14 B
// parameters.
func decoder(n int) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}, {Domain: contrib, Version: 1}}
	d := decoderBuilder{Graph: m.Graph}
	d.Name = "decoder"
	ids := d.input("input_ids", ir.Int64, "batch_size", "sequence_length")
	d.mask(d.input("attention_mask", ir.Int64, "batch_size", "total_sequence_length"))
	d.rope = [2]*ir.Value{d.weight("cos_cache", positions, headSize/2), d.weight("sin_cache", positions, headSize/2)}
	x := d.Insert(nil, "Gather", []*ir.Value{d.weight("model.embed_tokens.weight", vocabulary, hidden), ids})
	y := d.node("", "SimplifiedLayerNormalization", 1, x, d.weight("model.layers.0.input_layernorm.weight", hidden))[0]
	var caches []*ir.Value
	for i := range n {
		layer := fmt.Sprintf("model.layers.%d", i)
		next := layer + ".final_norm_layernorm.weight"
		if i+1 < n {
			next = fmt.Sprintf("model.layers.%d.input_layernorm.weight", i+1)
		}
		attention, present := d.attention(layer, i, y)
		caches = append(caches, present...)
		y, x = d.skip(layer+".post_attention_layernorm.weight", x, attention)
		y, x = d.skip(next, x, d.mlp(layer, y))
	}
	logits := d.product("lm_head", y, hidden, vocabulary)
	logits.Name, logits.Type = "logits", symbolic(ir.Float16, "batch_size", "sequence_length", vocabulary)
	d.AddOutput(logits)
	for _, c := range caches {
		d.AddOutput(c)
	}
	return m
}

// contrib is the domain of ONNX Runtime's own operators.
const contrib = "com.microsoft"

// A decoderBuilder adds the nodes of a decoder.
type decoderBuilder struct {
	*ir.Graph
	rope           [2]*ir.Value
	lengths, total *ir.Value // of the sequences, from the mask
}

// symbolic is the type of a tensor whose axes have names or sizes.
func symbolic(elem ir.DType, axes ...any) *ir.Type {
	t := &ir.Type{Elem: elem}
	for _, a := range axes {
		if name, ok := a.(string); ok {
			t.Shape = append(t.Shape, ir.Dim{Param: name})
		} else {
			t.Shape = append(t.Shape, ir.Dim{N: int64(a.(int))})
		}
	}
	return t
}

func (d *decoderBuilder) input(name string, elem ir.DType, axes ...any) *ir.Value {
	v := d.AddValue(name)
	v.Type = symbolic(elem, axes...)
	d.Inputs = append(d.Inputs, v)
	return v
}

// node adds a node with the given number of outputs.
func (d *decoderBuilder) node(domain, op string, outputs int, in ...*ir.Value) []*ir.Value {
	n := d.NewNode(ir.OpID{Domain: domain, Type: op}, in)
	out := make([]*ir.Value, outputs)
	for i := range out {
		out[i] = d.NewValue(op)
	}
	n.SetOutputs(out...)
	d.Append(n)
	return out
}

// mask computes the lengths that GroupQueryAttention reads.
func (d *decoderBuilder) mask(mask *ir.Value) {
	ints := func(name string, is ...int64) *ir.Value {
		return d.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
			Source: ir.Ints(is...)})
	}
	to := ir.IntAttr("to", int64(ir.Int32))
	sum := d.Insert(nil, "ReduceSum", []*ir.Value{mask, ints("axis", 1)})
	d.lengths = d.Insert(nil, "Cast", []*ir.Value{d.Insert(nil, "Sub", []*ir.Value{sum, ints("one", 1)})}, to)
	shape := d.Insert(nil, "Shape", []*ir.Value{mask})
	d.total = d.Insert(nil, "Cast", []*ir.Value{d.Insert(nil, "Gather", []*ir.Value{shape, ints("second", 1)})}, to)
}

// attention returns the output of a layer's attention and its caches.
func (d *decoderBuilder) attention(layer string, i int, x *ir.Value) (*ir.Value, []*ir.Value) {
	in := []*ir.Value{
		d.product(layer+".attn.q_proj", x, hidden, heads*headSize),
		d.product(layer+".attn.k_proj", x, hidden, keyHeads*headSize),
		d.product(layer+".attn.v_proj", x, hidden, keyHeads*headSize),
	}
	for _, kind := range []string{"key", "value"} {
		in = append(in, d.input(fmt.Sprintf("past_key_values.%d.%s", i, kind), ir.Float16, "batch_size", keyHeads,
			"past_sequence_length", headSize))
	}
	out := d.node(contrib, "GroupQueryAttention", 3, append(in, d.lengths, d.total, d.rope[0], d.rope[1])...)
	out[0].Producer().Attrs = []*ir.Attr{ir.IntAttr("num_heads", heads), ir.IntAttr("kv_num_heads", keyHeads),
		ir.IntAttr("do_rotary", 1)}
	for k, kind := range []string{"key", "value"} {
		out[k+1].Name = fmt.Sprintf("present.%d.%s", i, kind)
		out[k+1].Type = symbolic(ir.Float16, "batch_size", keyHeads, "total_sequence_length", headSize)
	}
	return d.product(layer+".attn.o_proj", out[0], heads*headSize, hidden), out[1:]
}

// mlp is the gated product of a layer.
func (d *decoderBuilder) mlp(layer string, x *ir.Value) *ir.Value {
	gate := d.product(layer+".mlp.gate_proj", x, hidden, mlp)
	gate = d.Insert(nil, "Mul", []*ir.Value{gate, d.Insert(nil, "Sigmoid", []*ir.Value{gate})})
	up := d.product(layer+".mlp.up_proj", x, hidden, mlp)
	return d.product(layer+".mlp.down_proj", d.Insert(nil, "Mul", []*ir.Value{gate, up}), mlp, hidden)
}

// skip adds y to x; it returns the normalized sum and the sum.
func (d *decoderBuilder) skip(weight string, x, y *ir.Value) (norm, sum *ir.Value) {
	out := d.node(contrib, "SkipSimplifiedLayerNormalization", 4, x, y, d.weight(weight, hidden))
	return out[0], out[3]
}

func (d *decoderBuilder) product(name string, x *ir.Value, rows, columns int64) *ir.Value {
	return d.Insert(nil, "MatMul", []*ir.Value{x, d.weight(name+".MatMul.weight", rows, columns)})
}

// weight adds a constant of normal values in float16, which are made while they are written.
func (d *decoderBuilder) weight(name string, shape ...int64) *ir.Value {
	seed := uint64(len(d.Consts()))
	r := &ir.Recipe{Name: "normal", Out: []ir.Spec{{DType: ir.Float16, Shape: shape}}}
	r.Run = func(ctx context.Context, _ []io.ReaderAt, out []io.Writer) error {
		return normal(ctx, out[0], r.Out[0].Bytes(), seed)
	}
	return d.AddConst(name, r.Derive()[0])
}

// normal writes bytes of float16 values of a normal distribution with the standard deviation 0.02.
func normal(ctx context.Context, w io.Writer, bytes int64, seed uint64) error {
	var values [1 << 12]uint16
	for i := range values {
		p := (float64(i) + 0.5) / float64(len(values))
		values[i] = float16.Fromfloat32(float32(0.02 * math.Sqrt2 * math.Erfinv(2*p-1))).Bits()
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	buffer := make([]byte, ir.CopyBuffer)
	for bytes > 0 && ctx.Err() == nil {
		chunk := buffer[:min(int64(len(buffer)), bytes)]
		var bits uint64
		for i := 0; i < len(chunk); i += 2 {
			if i%10 == 0 {
				bits = rng.Uint64()
			}
			binary.LittleEndian.PutUint16(chunk[i:], values[bits%uint64(len(values))])
			bits >>= 12
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		bytes -= int64(len(chunk))
	}
	return ctx.Err()
}
