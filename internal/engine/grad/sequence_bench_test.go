package grad

import (
	"math"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A block is a model under construction, whose weights are small random numbers.
type block struct {
	*ir.Graph
	m *ir.Model
}

func newBlock() (*block, *ir.Value) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 24}}
	x := m.Graph.AddValue("x")
	m.Graph.Inputs = []*ir.Value{x}
	return &block{m.Graph, m}, x
}

func (b *block) weight(name string, shape ...int64) *ir.Value {
	return b.constant(name, single(shape...))
}

func (b *block) constant(name string, a *ir.Array) *ir.Value {
	return b.AddConst(name, &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
}

func (b *block) dense(x *ir.Value, name string, in, out int64) *ir.Value {
	return b.Insert(nil, "MatMul", []*ir.Value{x, b.weight(name, in, out)})
}

// BenchmarkBiLSTM is a step of a bidirectional LSTM of 128 units on 32 sequences of 64 steps of 128 numbers.
func BenchmarkBiLSTM(b *testing.B) {
	const steps, batch, size = 64, 32, 128
	m, x := newBlock()
	in := []*ir.Value{x, m.weight("w", 2, 4*size, size), m.weight("r", 2, 4*size, size), m.weight("b", 2, 8*size)}
	m.AddOutput(m.Insert(nil, "LSTM", in, ir.IntAttr("hidden_size", size), ir.StringAttr("direction", "bidirectional")))
	benchmarkStep(b, m.m, steps, batch, size)
}

// BenchmarkDecoderBlock is a step of a block of 256 channels with 8 query heads, 2 key heads and SwiGLU of 704 units,
// on 4 sequences of 256 tokens.
func BenchmarkDecoderBlock(b *testing.B) {
	const batch, tokens, width, heads, kvHeads, size, inner = 4, 256, 256, 8, 2, 32, 704
	m, x := newBlock()
	angle := func(f func(float64) float64) *ir.Value {
		a := ir.NewArray(ir.Float, tokens, size/2)
		for i := range ir.View[float32](a) {
			ir.View[float32](a)[i] = float32(f(float64(i / (size / 2))))
		}
		return m.constant("angle", a)
	}
	places := ir.NewArray(ir.Int64, batch, tokens)
	for i := range ir.View[int64](places) {
		ir.View[int64](places)[i] = int64(i % tokens)
	}
	cos, sin, at := angle(math.Cos), angle(math.Sin), m.constant("places", places)
	norm := func(x *ir.Value, name string) *ir.Value {
		return m.Insert(nil, "RMSNormalization", []*ir.Value{x, m.weight(name, width)})
	}
	rotary := func(x *ir.Value, heads int64) *ir.Value {
		return m.Insert(nil, "RotaryEmbedding", []*ir.Value{x, cos, sin, at}, ir.IntAttr("num_heads", heads))
	}
	n := norm(x, "n1")
	q, k, v := m.dense(n, "q", width, width), m.dense(n, "k", width, kvHeads*size), m.dense(n, "v", width, kvHeads*size)
	a := m.Insert(nil, "Attention", []*ir.Value{rotary(q, heads), rotary(k, kvHeads), v},
		ir.IntAttr("q_num_heads", heads), ir.IntAttr("kv_num_heads", kvHeads), ir.IntAttr("is_causal", 1))
	x = m.Insert(nil, "Add", []*ir.Value{x, m.dense(a, "o", width, width)})
	n = norm(x, "n2")
	gate := m.Insert(nil, "Swish", []*ir.Value{m.dense(n, "gate", width, inner)})
	up := m.Insert(nil, "Mul", []*ir.Value{gate, m.dense(n, "up", width, inner)})
	m.AddOutput(m.Insert(nil, "Add", []*ir.Value{x, m.dense(up, "down", inner, width)}))
	benchmarkStep(b, m.m, batch, tokens, width)
}
