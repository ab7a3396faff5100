package linear

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A crossAttention is one com.microsoft MultiHeadAttention node.
type crossAttention struct {
	contribAttention
	dt           ir.DType
	keys, values kvCache
	joined       bool // there is a past, or the present has consumers
	split        bool // keys and values are [batch, heads, tokens, size], without bias
}

// Inputs of com.microsoft's MultiHeadAttention.
const (
	crossQ = iota
	crossK
	crossV
	crossBias
	crossMask
	crossScores
	crossPastKey
	crossPastValue
	crossPastLength
)

func crossOf(n *op.Node, in []*ir.Array) (*crossAttention, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	q, err := op.Arg(in, crossQ, "query")
	if err != nil {
		return nil, err
	}
	heads := n.Int("num_heads", 0)
	if heads <= 0 || q.DType != ir.Float && !half(q.DType) || op.Opt(in, crossPastLength) != nil {
		return nil, fmt.Errorf("input query is %s with %d heads, or past and present share a buffer", q, heads)
	}
	for i, a := range in {
		if a != nil && i != crossMask && a.DType != q.DType {
			return nil, fmt.Errorf("input %d is %s, query is %s", i, a, q)
		}
	}
	p := &crossAttention{dt: q.DType}
	tokens, err := p.operands(in, int(heads))
	if err != nil {
		return nil, err
	}
	if p.past, err = p.pastOf(in, tokens); err != nil {
		return nil, err
	}
	p.joined = p.past > 0 || n.HasConsumer(1) || n.HasConsumer(2)
	p.Keys, p.queriesPerKey = p.past+tokens, 1
	p.keys = kvCache{p.batch, p.heads, p.Keys, p.Size, p.past, tokens}
	p.values = kvCache{p.batch, p.heads, p.Keys, p.Value, p.past, tokens}
	p.y = packed(p.heads, p.Queries, p.Value)
	if b := op.Opt(in, crossBias); b != nil && b.Elems() != int64(p.heads*(2*p.Size+p.Value)) {
		return nil, fmt.Errorf("input bias is %s for %d heads of %d, %d and %d elements", b, p.heads, p.Size, p.Size,
			p.Value)
	}
	if m := op.Opt(in, crossMask); m != nil && len(m.Shape) > 3 {
		return nil, fmt.Errorf("input key_padding_mask is %s, want at most three axes", m)
	}
	return p, p.masks(n, op.Opt(in, crossMask), op.Opt(in, crossScores))
}

// operands reads the shapes of query, key and value, some of which may be packed into one tensor, and returns the
// number of keys without past ones.
func (p *crossAttention) operands(in []*ir.Array, heads int) (tokens int, err error) {
	q, k, v := in[crossQ], op.Opt(in, crossK), op.Opt(in, crossV)
	bad := fmt.Errorf("inputs query %v, key %v and value %v do not match %d heads", q, k, v, heads)
	h := int64(heads)
	p.heads = heads
	if len(q.Shape) == 5 { // [batch, tokens, heads, 3, size]
		if k != nil || v != nil || q.Shape[2] != h || q.Shape[3] != 3 {
			return 0, bad
		}
		p.batch, p.Queries, p.Size, p.Value = int(q.Shape[0]), int(q.Shape[1]), int(q.Shape[4]), int(q.Shape[4])
		p.q, p.k, p.v = p.interleaved(p.Queries, 3, 0), p.interleaved(p.Queries, 3, 1), p.interleaved(p.Queries, 3, 2)
		return p.Queries, nil
	}
	if len(q.Shape) != 3 || q.Shape[2]%h != 0 || k == nil {
		return 0, bad
	}
	p.batch, p.Queries, p.Size = int(q.Shape[0]), int(q.Shape[1]), int(q.Shape[2]/h)
	p.q = packed(heads, p.Queries, p.Size)
	if len(k.Shape) == 0 || k.Shape[0] != q.Shape[0] {
		return 0, bad
	}
	switch {
	case len(k.Shape) == 5 && v == nil && k.Shape[2] == h && k.Shape[3] == 2 && k.Shape[4] == int64(p.Size):
		p.Value, tokens = p.Size, int(k.Shape[1])
		p.k, p.v = p.interleaved(tokens, 2, 0), p.interleaved(tokens, 2, 1)
	case v == nil || len(v.Shape) != len(k.Shape) || v.Shape[0] != k.Shape[0]:
		return 0, bad
	case len(k.Shape) == 4 && k.Shape[1] == h && v.Shape[1] == h && v.Shape[2] == k.Shape[2] &&
		k.Shape[3] == int64(p.Size):
		p.Value, tokens, p.split = int(v.Shape[3]), int(k.Shape[2]), true
		p.k, p.v = split(heads, tokens, p.Size), split(heads, tokens, p.Value)
	case len(k.Shape) == 3 && k.Shape[2] == q.Shape[2] && v.Shape[1] == k.Shape[1] && v.Shape[2]%h == 0:
		p.Value, tokens = int(v.Shape[2]/h), int(k.Shape[1])
		p.k, p.v = packed(heads, tokens, p.Size), packed(heads, tokens, p.Value)
	default:
		return 0, bad
	}
	return tokens, nil
}

// interleaved is part i of a tensor [batch, tokens, heads, of, size].
func (p *crossAttention) interleaved(tokens, of, i int) headLayout {
	return headLayout{from: i * p.Size, batch: tokens * p.heads * of * p.Size, head: of * p.Size,
		token: p.heads * of * p.Size}
}

// pastOf is the number of tokens in past_key and past_value.
func (p *crossAttention) pastOf(in []*ir.Array, fresh int) (int, error) {
	key, value := op.Opt(in, crossPastKey), op.Opt(in, crossPastValue)
	if key == nil && value == nil {
		return 0, nil
	}
	if key == nil || value == nil || len(key.Shape) != 4 || len(value.Shape) != 4 {
		return 0, fmt.Errorf("inputs past_key %v and past_value %v must both have four axes", key, value)
	}
	past := int(key.Shape[2])
	k := kvCache{p.batch, p.heads, past, p.Size, past, fresh}.spec(p.dt)
	v := kvCache{p.batch, p.heads, past, p.Value, past, fresh}.spec(p.dt)
	if key.String() != k.String() || value.String() != v.String() {
		return 0, fmt.Errorf("inputs past_key %s and past_value %s, want %s and %s", key, value, k, v)
	}
	return past, nil
}

func (p *crossAttention) specs() []ir.Spec {
	y := []int64{int64(p.batch), int64(p.Queries), int64(p.heads * p.Value)}
	s := p.contribAttention.scores()
	return []ir.Spec{{DType: p.dt, Shape: y}, p.keys.spec(p.dt), p.values.spec(p.dt), {DType: p.dt, Shape: s[:]}}
}

func crossShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := crossOf(n, in)
	if err != nil {
		return nil, err
	}
	return p.specs(), nil
}

// crossMemory is the memory of a run.
type crossMemory struct {
	q, k, v, bias, pastKey, pastValue, presentKey, presentValue, y, probe []float32
	biased                                                                [3][]float32 // q, k and v with bias
}

func (p *crossAttention) layOut(s *scratch, in, out []*ir.Array) (m crossMemory) {
	m.q = load[float32](s, in[crossQ])
	// Without inputs of their own they are parts of one tensor, at the offsets of p.k and p.v.
	m.k, m.v = m.q, m.q
	if k := op.Opt(in, crossK); k != nil {
		m.k = load[float32](s, k)
		m.v = m.k
	}
	if v := op.Opt(in, crossV); v != nil {
		m.v = load[float32](s, v)
	}
	if b := op.Opt(in, crossBias); b != nil {
		m.bias = load[float32](s, b)
		for i, n := range []int{p.Queries * p.Size, p.keys.new * p.Size, p.keys.new * p.Value} {
			if i == 0 || !p.split {
				m.biased[i] = take[float32](s, int64(p.batch)*int64(p.heads)*int64(n))
			}
		}
	}
	if p.past > 0 {
		m.pastKey, m.pastValue = load[float32](s, in[crossPastKey]), load[float32](s, in[crossPastValue])
	}
	m.y = space[float32](s, out[0])
	if p.joined {
		m.presentKey, m.presentValue = space[float32](s, out[1]), space[float32](s, out[2])
	}
	if out[3] != nil {
		m.probe = space[float32](s, out[3])
	}
	return m
}

// outputs are out, with memory for a present without consumers.
func (p *crossAttention) outputs(s *scratch, out []*ir.Array) []*ir.Array {
	all := make([]*ir.Array, 4)
	copy(all, out)
	n := 1
	if p.joined {
		n = 3
	}
	copy(all, s.outputs(p.specs()[:n], all[:n]))
	return all
}

func crossWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := crossOf(n, in)
	if err != nil {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, p.outputs(s, consumedOutputs(n, p.specs())))
	return s.used + workOf[float32](&p.multihead, workers)
}

func runCross(c *op.Call) error {
	p, err := crossOf(c.Node, c.In)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	out := p.outputs(s, c.Out)
	m := p.layOut(s, c.In, out)
	// Before the caches are filled: present keys and values have the bias.
	p.addBias(c.Pool, &m)
	x := tensors[float32]{q: m.q, k: m.k, v: m.v, y: m.y, probe: m.probe,
		mask: p.mask(op.Opt(c.In, crossMask), m.probe != nil)}
	if p.joined {
		p.keys.fill(c.Pool, m.presentKey, m.pastKey, m.k, p.k, p.keys.all)
		p.values.fill(c.Pool, m.presentValue, m.pastValue, m.v, p.v, p.values.all)
		x.k, x.v, p.k, p.v = m.presentKey, m.presentValue, p.keys.layout(), p.values.layout()
	}
	attend(c.Pool, &p.multihead, s.rest(), attention.Options[float32]{Scale: p.scale(c.Node),
		Stage: attention.Masked}, x)
	for i, x := range [][]float32{m.y, m.presentKey, m.presentValue, m.probe} {
		if x != nil && out[i] != nil {
			store(out[i], x)
		}
	}
	return nil
}

// addBias replaces queries, keys and values by copies with bias.
func (p *crossAttention) addBias(pool *op.Pool, m *crossMemory) {
	if m.bias == nil {
		return
	}
	bias := m.bias
	for i, part := range []struct {
		x            *[]float32
		at           *headLayout
		tokens, size int
	}{{&m.q, &p.q, p.Queries, p.Size}, {&m.k, &p.k, p.keys.new, p.Size}, {&m.v, &p.v, p.keys.new, p.Value}} {
		own := bias[:p.heads*part.size]
		bias = bias[len(own):]
		if m.biased[i] == nil {
			continue
		}
		to := packed(p.heads, part.tokens, part.size)
		dst, src, from := m.biased[i], *part.x, *part.at
		pool.Rows(p.batch*part.tokens, max(1, (1<<13)/max(len(own), 1)), func(first, last int) {
			for t := first; t < last; t++ {
				for h := range p.heads {
					b, token := t/part.tokens, t%part.tokens
					kernel.Add(dst[to.at(b, h)+token*to.token:][:part.size],
						src[from.at(b, h)+token*from.token:][:part.size], own[h*part.size:][:part.size])
				}
			}
		})
		*part.x, *part.at = dst, to
	}
}
