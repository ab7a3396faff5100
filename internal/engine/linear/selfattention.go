package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A selfAttention is one com.microsoft Attention node, which first multiplies its input by the weights of Q, K and V.
type selfAttention struct {
	contribAttention
	input, width int // elements of a token, and of its query, key and value together
	keys, values kvCache
	dt           ir.DType
	joined       bool // there is a past, or the present has consumers
}

// Inputs of com.microsoft's Attention.
const (
	selfX = iota
	selfWeights
	selfBias
	selfMask
	selfPast
	selfScores
	selfPastLength
)

func selfOf(n *op.Node, in []*ir.Array) (*selfAttention, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	x, err := op.Arg(in, selfX, "input")
	if err != nil {
		return nil, err
	}
	w, err := op.Arg(in, selfWeights, "weights")
	if err != nil {
		return nil, err
	}
	if len(x.Shape) != 3 || len(w.Shape) != 2 || x.Shape[2] != w.Shape[0] || x.DType != w.DType ||
		x.DType != ir.Float && !half(x.DType) {
		return nil, fmt.Errorf("inputs %s and weights %s do not match", x, w)
	}
	if n.Bool("do_rotary", false) || n.Bool("past_present_share_buffer", false) || op.Opt(in, selfPastLength) != nil {
		return nil, fmt.Errorf("do_rotary and past_present_share_buffer are not supported")
	}
	heads, sizes := n.Int("num_heads", 0), n.Ints("qkv_hidden_sizes")
	if sizes == nil {
		sizes = []int64{w.Shape[1] / 3, w.Shape[1] / 3, w.Shape[1] / 3}
	}
	if heads <= 0 || len(sizes) != 3 || !divides(heads, sizes) || sizes[0] != sizes[1] ||
		sizes[0]+sizes[1]+sizes[2] != w.Shape[1] {
		return nil, fmt.Errorf("input weights %s does not match Q, K and V of %d heads with sizes %v", w, heads, sizes)
	}
	if b := op.Opt(in, selfBias); b != nil && (b.DType != x.DType || len(b.Shape) != 1 || b.Shape[0] != w.Shape[1]) {
		return nil, fmt.Errorf("input bias is %s for weights %s", b, w)
	}
	p := &selfAttention{input: int(w.Shape[0]), width: int(w.Shape[1]), dt: x.DType}
	batch, tokens, h := int(x.Shape[0]), int(x.Shape[1]), int(heads)
	size, value := int(sizes[0]/heads), int(sizes[2]/heads)
	if err := p.pastOf(in, batch, h, size, value); err != nil {
		return nil, err
	}
	p.multihead = multihead{
		Shape: attention.Shape{Queries: tokens, Keys: p.past + tokens, Size: size, Value: value},
		batch: batch, heads: h, queriesPerKey: 1, y: packed(h, tokens, value),
	}
	p.q = headLayout{batch: tokens * p.width, head: size, token: p.width}
	p.k, p.v = p.q, p.q
	// A token of the projection has the queries of all heads, then their keys, then their values, whose heads may have
	// another size.
	p.k.from, p.v.from, p.v.head = int(sizes[0]), int(2*sizes[0]), value
	p.keys = kvCache{batch, h, p.Keys, size, p.past, tokens}
	p.values = kvCache{batch, h, p.Keys, value, p.past, tokens}
	p.joined = p.past > 0 || n.HasConsumer(1)
	if p.joined && size != value {
		return nil, fmt.Errorf("keys of %d elements and values of %d cannot be stored in one tensor", size, value)
	}
	return p, p.masks(n, p.flags(in), op.Opt(in, selfScores))
}

// divides reports whether heads divides all sizes, none of which is negative.
func divides(heads int64, sizes []int64) bool {
	for _, s := range sizes {
		if s < 0 || s%heads != 0 {
			return false
		}
	}
	return true
}

// pastOf reads the number of past tokens.
func (p *selfAttention) pastOf(in []*ir.Array, batch, heads, size, value int) error {
	past := op.Opt(in, selfPast)
	if past == nil {
		return nil
	}
	s := past.Shape
	if past.DType != p.dt || len(s) != 5 || s[0] != 2 || s[1] != int64(batch) || s[2] != int64(heads) ||
		s[4] != int64(size) || size != value {
		return fmt.Errorf("input past is %s, want [2,%d,%d,past,%d]", past, batch, heads, size)
	}
	p.past = int(s[3])
	return nil
}

// flags is the mask, nil for a mask of size 1, which masks nothing.
func (p *selfAttention) flags(in []*ir.Array) *ir.Array {
	m := op.Opt(in, selfMask)
	if m != nil && len(m.Shape) == 2 && m.Shape[1] == 1 && p.Keys != 1 {
		return nil
	}
	return m
}

func selfShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := selfOf(n, in)
	if err != nil {
		return nil, err
	}
	return p.specs(), nil
}

func (p *selfAttention) specs() []ir.Spec {
	y := []int64{int64(p.batch), int64(p.Queries), int64(p.heads * p.Value)}
	return []ir.Spec{{DType: p.dt, Shape: y}, {DType: p.dt, Shape: append([]int64{2}, p.keys.spec(p.dt).Shape...)}}
}

// prepareSelf prepacks the weights.
func prepareSelf(n *op.Node, in []*ir.Array, pool *op.Pool) (*op.Prepared, error) {
	w := op.Opt(in, selfWeights)
	if w == nil || !packs(w) {
		return nil, nil
	}
	packed := gemm.PackFloat(pool, gemm.Rows(ir.View[float32](w), int(w.Shape[1])), int(w.Shape[0]), int(w.Shape[1]))
	return &op.Prepared{State: packed, Bytes: packed.Bytes(), Drops: []int{selfWeights}}, nil
}

func (p *selfAttention) projection() gemm.Shape {
	return gemm.Shape{M: p.batch * p.Queries, N: p.width, K: p.input}
}

// selfMemory is the memory of a run.
type selfMemory struct {
	x, weights, bias, past, projected, present, y []float32
	work                                          []byte // of the projection, and then of the heads
}

func (p *selfAttention) layOut(s *scratch, in, out []*ir.Array, packed bool, workers int) selfMemory {
	m := selfMemory{x: load[float32](s, in[selfX]), y: space[float32](s, out[0])}
	if !packed {
		m.weights = load[float32](s, in[selfWeights])
	}
	if b := op.Opt(in, selfBias); b != nil {
		m.bias = load[float32](s, b)
	}
	m.projected = take[float32](s, int64(p.batch)*int64(p.Queries)*int64(p.width))
	if p.joined {
		if past := op.Opt(in, selfPast); past != nil {
			m.past = load[float32](s, past)
		}
		m.present = space[float32](s, out[1])
	}
	m.work = s.bytes(max(gemm.FloatWork(p.projection(), 1, workers, packed), workOf[float32](&p.multihead, workers)))
	return m
}

func selfWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := selfOf(n, in)
	if err != nil {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, p.outputs(s, consumedOutputs(n, p.specs())), n.IsConst(selfWeights) && packs(in[selfWeights]), workers)
	return s.used
}

// outputs are out, with memory for a present without consumers.
func (p *selfAttention) outputs(s *scratch, out []*ir.Array) []*ir.Array {
	if p.joined {
		return s.outputs(p.specs(), out)
	}
	return s.outputs(p.specs()[:1], out[:1])
}

func runSelf(c *op.Call) error {
	p, err := selfOf(c.Node, c.In)
	if err != nil {
		return err
	}
	packed, _ := c.State.(*gemm.PackedFloat)
	s := &scratch{mem: c.Work}
	out := p.outputs(s, c.Out)
	m := p.layOut(s, c.In, out, packed != nil, c.Pool.Workers())
	p.project(c.Pool, m, packed)
	x := tensors[float32]{q: m.projected, k: m.projected, v: m.projected, y: m.y, mask: p.mask(p.flags(c.In), false)}
	if p.joined {
		// Keys of all batches, then values, in one tensor.
		n := len(m.present) / 2
		p.keys.fill(c.Pool, m.present[:n], m.past[:len(m.past)/2], m.projected, p.k, p.keys.all)
		p.values.fill(c.Pool, m.present[n:], m.past[len(m.past)/2:], m.projected, p.v, p.values.all)
		x.k, x.v, p.k, p.v = m.present[:n], m.present[n:], p.keys.layout(), p.values.layout()
		store(out[1], m.present)
	}
	attend(c.Pool, &p.multihead, m.work, attention.Options[float32]{Scale: p.scale(c.Node)}, x)
	store(out[0], m.y)
	return nil
}

// project multiplies the input by the weights of queries, keys and values.
func (p *selfAttention) project(pool *op.Pool, m selfMemory, packed *gemm.PackedFloat) {
	f := gemm.FloatProduct{A: gemm.Rows(m.x, p.input), Packed: packed, C: m.projected, Stride: p.width}
	if packed == nil {
		f.B = gemm.Rows(m.weights, p.width)
	}
	if m.bias != nil {
		f.Epilogue.Bias = gemm.Matrix[float32]{Data: m.bias, Col: 1}
	}
	gemm.Float(pool, p.projection(), m.work, f)
}
