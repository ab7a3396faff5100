package linear

import (
	"errors"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A groupAttention is one com.microsoft GroupQueryAttention node: causal attention in which several query heads share a
// key head.
type groupAttention struct {
	contribAttention
	dt      ir.DType
	caches  ir.DType // of the past and present keys and values: dt, or Int8
	kvHeads int
	cache   kvCache // the present one
	sliding bool    // the caches hold the last positions only
	// keys, or values, that the queries can attend to: cache, or with sliding all past ones followed by the new ones
	staged        kvCache
	firstCall     bool       // all tokens are new
	keys, values  headLayout // of the new tokens
	rotates       bool
	pairs         int
	window        int64
	bidirectional bool
	total         int // tokens of the longest sequence
}

// Inputs of com.microsoft's GroupQueryAttention.
const (
	groupQ = iota
	groupK
	groupV
	groupPastKey
	groupPastValue
	groupLengths
	groupTotal
	groupCos
	groupSin
	groupPositions
	groupScores
	groupSink
	groupKeyScale
	groupValueScale
	groupFurther // weights of norms
)

func groupOf(n *op.Node, in []*ir.Array) (*groupAttention, error) {
	if err := valid(in); err != nil {
		return nil, err
	}
	q, err := op.Arg(in, groupQ, "query")
	if err != nil {
		return nil, err
	}
	p := &groupAttention{dt: q.DType, caches: q.DType, window: n.Int("local_window_size", -1),
		bidirectional: !n.Bool("causal", true), sliding: n.Bool("sliding_window_cache", false)}
	if err := p.supported(n, in); err != nil {
		return nil, err
	}
	// Heads before tokens, as the shapes of caches have their number and size, and both before the mask.
	if err := p.operands(n, in); err != nil {
		return nil, err
	}
	if err := p.tokens(in); err != nil {
		return nil, err
	}
	if b := op.Opt(in, groupScores); b != nil {
		if len(b.Shape) != 4 {
			return nil, fmt.Errorf("input attention_bias is %s, want four axes", b)
		}
		if p.bias, err = maskOf(b, [4]int64{int64(p.batch), int64(p.heads), int64(p.Queries), int64(p.total)},
			false); err != nil {
			return nil, err
		}
	}
	if s := op.Opt(in, groupSink); s != nil && s.Elems() != int64(p.heads) {
		return nil, fmt.Errorf("input head_sink is %s for %d heads", s, p.heads)
	}
	if err := p.quantization(n, in); err != nil {
		return nil, err
	}
	return p, p.rotation(n, in)
}

// supported is an error for types that do not match, and for features that ONNX Runtime has on other devices only.
func (p *groupAttention) supported(n *op.Node, in []*ir.Array) error {
	quantized := n.Text("k_quant_type", "NONE") != "NONE" || n.Text("v_quant_type", "NONE") != "NONE"
	if quantized {
		p.caches = ir.Int8
	}
	own := map[int]ir.DType{
		groupLengths: ir.Int32, groupTotal: ir.Int32, groupPositions: ir.Int64, groupPastKey: p.caches,
		groupPastValue: p.caches,
		groupKeyScale:  ir.Float, groupValueScale: ir.Float,
	}
	for i, a := range in {
		want, ok := own[i]
		if !ok {
			want = p.dt
		}
		switch {
		case a == nil:
		case i >= groupFurther:
			return fmt.Errorf("input %d is %s: not supported: weights of norms", i, a)
		case a.DType != want:
			return fmt.Errorf("input %d is %s, want %s", i, a, want)
		}
	}
	switch {
	case quantized && n.Int("kv_cache_bit_width", 8) != 8:
		return fmt.Errorf("not supported: kv_cache_bit_width = %d", n.Int("kv_cache_bit_width", 8))
	case p.dt != ir.Float && !half(p.dt):
		return fmt.Errorf("not supported: queries of %s", p.dt)
	case p.sliding && (p.window <= 0 || p.bidirectional):
		return fmt.Errorf("sliding_window_cache with local_window_size = %d and causal = %v, want a window and causal "+
			"attention", p.window, !p.bidirectional)
	case n.HasConsumer(3):
		return errors.New("not supported: output output_qk")
	}
	return nil
}

// quantization checks the scales of quantized caches: one, or one for each head and position in it.
func (p *groupAttention) quantization(n *op.Node, in []*ir.Array) error {
	if p.caches != ir.Int8 {
		return nil
	}
	for i, attr := range map[int]string{groupKeyScale: "k_quant_type", groupValueScale: "v_quant_type"} {
		scale, want := op.Opt(in, i), int64(1)
		if n.Text(attr, "NONE") == "PER_CHANNEL" {
			want = int64(p.kvHeads * p.Size)
		} else if n.Text(attr, "NONE") != "PER_TENSOR" {
			return fmt.Errorf("%s is %q, want PER_TENSOR or PER_CHANNEL", attr, n.Text(attr, "NONE"))
		}
		if scale == nil || scale.Elems() != want {
			return fmt.Errorf("input %d is %v, want %d scales", i, scale, want)
		}
	}
	return nil
}

// operands reads the shapes of query, key and value, which may be packed into one tensor.
func (p *groupAttention) operands(n *op.Node, in []*ir.Array) error {
	q, k, v := in[groupQ], op.Opt(in, groupK), op.Opt(in, groupV)
	heads, kv := n.Int("num_heads", 0), n.Int("kv_num_heads", 0)
	if heads <= 0 || kv <= 0 || heads%kv != 0 || heads > 1<<20 || len(q.Shape) != 3 {
		return fmt.Errorf("input query is %s, with num_heads = %d and kv_num_heads = %d", q, heads, kv)
	}
	p.heads, p.kvHeads, p.queriesPerKey = int(heads), int(kv), int(heads/kv)
	p.batch, p.Queries, p.Causal = int(q.Shape[0]), int(q.Shape[1]), !p.bidirectional
	all := heads
	if k == nil && v == nil {
		// Packed: each token has the query heads, then the key heads and the value heads.
		all += 2 * kv
	}
	if q.Shape[2]%all != 0 {
		return fmt.Errorf("input query is %s for %d heads", q, all)
	}
	p.Size = int(q.Shape[2] / all)
	p.Value = p.Size
	p.y = packed(p.heads, p.Queries, p.Size)
	if k == nil && v == nil {
		p.q = headLayout{batch: p.Queries * int(q.Shape[2]), head: p.Size, token: int(q.Shape[2])}
		p.keys, p.values = p.q, p.q
		p.keys.from, p.values.from = p.heads*p.Size, (p.heads+p.kvHeads)*p.Size
		return nil
	}
	want := ir.Spec{DType: p.dt, Shape: []int64{q.Shape[0], q.Shape[1], kv * int64(p.Size)}}
	if k == nil || v == nil || k.String() != want.String() || v.String() != want.String() {
		return fmt.Errorf("inputs key %v and value %v, want %s", k, v, want)
	}
	p.q, p.keys = p.y, packed(p.kvHeads, p.Queries, p.Size)
	p.values = p.keys
	return nil
}

// tokens reads the number of past tokens in the caches, and of all tokens.
func (p *groupAttention) tokens(in []*ir.Array) error {
	lengths, total := op.Opt(in, groupLengths), op.Opt(in, groupTotal)
	if lengths == nil || total == nil || lengths.Elems() != int64(p.batch) || total.Elems() != 1 {
		return fmt.Errorf("inputs seqlens_k %v and total_sequence_length %v must have %d elements and 1", lengths,
			total, p.batch)
	}
	p.cache = kvCache{batch: p.batch, heads: p.kvHeads, size: p.Size, new: p.Queries}
	key, value := op.Opt(in, groupPastKey), op.Opt(in, groupPastValue)
	if (key == nil) != (value == nil) {
		return fmt.Errorf("one of past_key and past_value is missing")
	}
	if key != nil {
		if len(key.Shape) != 4 {
			return fmt.Errorf("input past_key is %s, want four axes", key)
		}
		p.cache.past, p.cache.tokens = int(key.Shape[2]), int(key.Shape[2])
		if want := p.cache.spec(p.caches).String(); key.String() != want || value.String() != want {
			return fmt.Errorf("inputs past_key %s and past_value %s, want %s", key, value, want)
		}
	}
	// Its value and not its type: the length of the caches is a number of the graph.
	n, err := op.Ints(total)
	if err != nil {
		return err
	}
	if n[0] < int64(p.Queries) || n[0] > 1<<31 {
		return fmt.Errorf("total_sequence_length is %d for %d queries", n[0], p.Queries)
	}
	p.total, p.firstCall = int(n[0]), n[0] == int64(p.Queries)
	if p.sliding && int64(p.cache.past) < p.window {
		return fmt.Errorf("sliding_window_cache: the caches hold %d tokens, the window has %d", p.cache.past, p.window)
	}
	// The first queries attend to positions that the present cache drops in this call, so it cannot be computed in.
	if p.sliding {
		p.staged = p.cache
		p.staged.tokens += p.Queries
	} else {
		p.cache.tokens = max(p.cache.past, p.total)
		p.staged = p.cache
	}
	p.Keys = p.staged.tokens
	p.k, p.v = p.staged.layout(), p.staged.layout()
	return nil
}

// rotation checks the inputs of the rotary embedding.
func (p *groupAttention) rotation(n *op.Node, in []*ir.Array) error {
	if p.rotates = n.Bool("do_rotary", false); !p.rotates {
		return nil
	}
	cos, sin := op.Opt(in, groupCos), op.Opt(in, groupSin)
	if cos == nil || sin == nil || cos.String() != sin.String() || len(cos.Shape) != 2 ||
		2*cos.Shape[1] > int64(p.Size) {
		return fmt.Errorf("inputs cos_cache %v and sin_cache %v do not match heads of %d elements", cos, sin, p.Size)
	}
	if ids := op.Opt(in, groupPositions); ids != nil && ids.Elems() != int64(p.batch)*int64(p.Queries) {
		return fmt.Errorf("input position_ids is %s for %d×%d tokens", ids, p.batch, p.Queries)
	}
	p.pairs = int(cos.Shape[1])
	return nil
}

func (p *groupAttention) specs() []ir.Spec {
	y := []int64{int64(p.batch), int64(p.Queries), int64(p.heads * p.Size)}
	return []ir.Spec{{DType: p.dt, Shape: y}, p.cache.spec(p.caches), p.cache.spec(p.caches)}
}

func groupShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	p, err := groupOf(n, in)
	if err != nil {
		return nil, err
	}
	return append(p.specs(), ir.Spec{DType: p.dt, Shape: []int64{0}}), nil
}

// groupMemory is the memory of a run.
type groupMemory struct {
	q, k, v, cos, sin, sink, turnedQ, turnedK []float32
	pastKey, pastValue, key, value, y         []float32
	stagedKey, stagedValue                    []float32 // key and value, unless the caches slide
}

func (p *groupAttention) layOut(s *scratch, in, out []*ir.Array) (m groupMemory) {
	m.q = load[float32](s, in[groupQ])
	// Packed inputs: offsets of p.keys and p.values are in the tensor of the queries.
	m.k, m.v = m.q, m.q
	if k := op.Opt(in, groupK); k != nil {
		m.k, m.v = load[float32](s, k), load[float32](s, in[groupV])
	}
	if p.rotates {
		m.cos, m.sin = load[float32](s, in[groupCos]), load[float32](s, in[groupSin])
		tokens := int64(p.batch) * int64(p.Queries)
		// Not in place: inputs are not written.
		m.turnedQ, m.turnedK = take[float32](s, tokens*int64(p.heads*p.Size)),
			take[float32](s, tokens*int64(p.kvHeads*p.Size))
	}
	if past := op.Opt(in, groupPastKey); past != nil {
		m.pastKey, m.pastValue = p.loadCache(s, past, op.Opt(in, groupKeyScale)),
			p.loadCache(s, in[groupPastValue], op.Opt(in, groupValueScale))
	}
	if a := op.Opt(in, groupSink); a != nil {
		m.sink = load[float32](s, a)
	}
	m.y, m.key, m.value = space[float32](s, out[0]), space[float32](s, out[1]), space[float32](s, out[2])
	// The present caches are what queries attend to, without a copy, unless they slide.
	m.stagedKey, m.stagedValue = m.key, m.value
	if p.sliding {
		n := p.staged.spec(ir.Float).Elems()
		m.stagedKey, m.stagedValue = take[float32](s, n), take[float32](s, n)
	}
	return m
}

// loadCache is a past cache as floats.
func (p *groupAttention) loadCache(s *scratch, a, scale *ir.Array) []float32 {
	if p.caches != ir.Int8 {
		return load[float32](s, a)
	}
	x := take[float32](s, a.Elems())
	// While memory is counted, inputs have no data.
	if s.counts {
		return nil
	}
	at := p.scales(scale, int(a.Shape[2]))
	for i, q := range ir.View[int8](a) {
		x[i] = float32(q) * at(i)
	}
	return x
}

// scales is the scale of element i of a cache of that number of tokens.
func (p *groupAttention) scales(scale *ir.Array, tokens int) func(i int) float32 {
	xs := ir.View[float32](scale)
	if len(xs) == 1 {
		return func(int) float32 { return xs[0] }
	}
	return func(i int) float32 { return xs[i/(tokens*p.Size)%p.kvHeads*p.Size+i%p.Size] }
}

// quantize is x, divided by its scale and rounded to the nearest even integer in the range of int8; 0 for NaN.
func quantize(x, scale float32) int8 {
	if x != x {
		return 0
	}
	return int8(min(max(math.RoundToEven(float64(x/scale)), math.MinInt8), math.MaxInt8))
}

// storeCache writes a present cache.
func (p *groupAttention) storeCache(a *ir.Array, x []float32, scale *ir.Array) {
	if p.caches != ir.Int8 {
		store(a, x)
		return
	}
	at, q := p.scales(scale, p.cache.tokens), ir.View[int8](a)
	for i := range q {
		q[i] = quantize(x[i], at(i))
	}
}

// roundCache replaces a staged cache by what a quantized one holds of it: new tokens are quantized before queries
// attend to them.
func (p *groupAttention) roundCache(x []float32, scale *ir.Array) {
	if p.caches != ir.Int8 {
		return
	}
	at := p.scales(scale, p.staged.tokens)
	for i := range x {
		x[i] = float32(quantize(x[i], at(i))) * at(i)
	}
}

func groupWork(n *op.Node, in []*ir.Array, workers int) int64 {
	p, err := groupOf(n, in)
	if err != nil {
		return 0
	}
	s := &scratch{counts: true}
	p.layOut(s, in, s.outputs(p.specs(), consumedOutputs(n, p.specs())))
	return s.used + workOf[float32](&p.multihead, workers)
}

func runGroup(c *op.Call) error {
	p, err := groupOf(c.Node, c.In)
	if err != nil {
		return err
	}
	lengths := ir.View[int32](c.In[groupLengths])
	before, err := p.pastLengths(lengths)
	if err != nil {
		return err
	}
	s := &scratch{mem: c.Work}
	out := s.outputs(p.specs(), append(c.Out[:len(c.Out):len(c.Out)], nil, nil)[:3])
	m := p.layOut(s, c.In, out)
	// Before keys are cached: caches have rotated keys, as positions do not change.
	if err := p.rotate(c, &m, before); err != nil {
		return err
	}
	cachedTokens := func(batch int) int { return p.cachedTokens(before[batch]) }
	p.staged.fill(c.Pool, m.stagedKey, m.pastKey, m.k, p.keys, cachedTokens)
	p.staged.fill(c.Pool, m.stagedValue, m.pastValue, m.v, p.values, cachedTokens)
	// After the new tokens are in, and before they are attended to or stored.
	p.roundCache(m.stagedKey, op.Opt(c.In, groupKeyScale))
	p.roundCache(m.stagedValue, op.Opt(c.In, groupValueScale))
	if p.sliding {
		p.slide(m.key, m.stagedKey, before)
		p.slide(m.value, m.stagedValue, before)
	}
	p.keyRange = func(batch int) attention.KeyRange {
		// Lengths count all positions, indices in a sliding cache those that it has.
		dropped := before[batch] - cachedTokens(batch)
		return p.visibleKeys(cachedTokens(batch), int(lengths[batch])+1-dropped)
	}
	x := tensors[float32]{q: m.q, k: m.stagedKey, v: m.stagedValue, y: m.y, mask: p.biases(before)}
	if m.sink != nil {
		x.sink = func(head int) []float32 { return m.sink[head:] }
	} else if c.Bool("smooth_softmax", false) {
		// It adds 1 = exp(0) to the sum of the exponentials, as a key with a score of 0 does.
		x.sink = func(int) []float32 { return []float32{0} }
	}
	attend(c.Pool, &p.multihead, s.rest(), attention.Options[float32]{Scale: p.scale(c.Node),
		Cap: c.Float("softcap", 0), Zeros: true}, x)
	store(out[0], m.y)
	p.storeCache(out[1], m.key, op.Opt(c.In, groupKeyScale))
	p.storeCache(out[2], m.value, op.Opt(c.In, groupValueScale))
	return nil
}

// pastLengths is the number of past tokens of each batch, those that a sliding cache has dropped included.
func (p *groupAttention) pastLengths(lengths []int32) ([]int, error) {
	out := make([]int, p.batch)
	past, most := p.cache.past, p.cache.tokens
	if p.sliding {
		past, most = p.total, p.total
	}
	for b, l := range lengths {
		// In the first call sequences may be shorter than the longest one: there is no past, and the length is that of its
		// tokens.
		if !p.firstCall || p.sliding {
			// seqlens_k is the number of all tokens minus one.
			out[b] = int(l) + 1 - p.Queries
		}
		if l < 0 || int(l) >= most || out[b] < 0 || out[b] > past || out[b]+p.Queries > most {
			return nil, fmt.Errorf("seqlens_k[%d] is %d for %d queries, a cache of %d tokens and "+
				"total_sequence_length = %d", b, l, p.Queries, p.cache.past, p.total)
		}
	}
	return out, nil
}

// cachedTokens is the number of tokens that the cache holds after that number of tokens. A full sliding cache drops as
// many as leave one fewer than the window, so that the window is complete with the next token.
func (p *groupAttention) cachedTokens(tokens int) int {
	if !p.sliding || tokens <= p.cache.past {
		return tokens
	}
	drop := p.cache.past - int(p.window) + 1
	return tokens - drop*((tokens-p.cache.past+drop-1)/drop)
}

// slide writes the last tokens of staged to the present cache, of which the rest is zero.
func (p *groupAttention) slide(present, staged []float32, before []int) {
	all, kept := p.staged.tokens*p.Size, p.cache.tokens*p.Size
	for i := range p.batch * p.kvHeads {
		past := before[i/p.kvHeads]
		end, n := (p.cachedTokens(past)+p.Queries)*p.Size, p.cachedTokens(past+p.Queries)*p.Size
		rows := present[i*kept:][:kept]
		copy(rows, staged[i*all:][end-n:end])
		clear(rows[n:])
	}
}

// biases is the mask of one head. The keys of attention_bias are all positions, those that a sliding cache has dropped
// included.
func (p *groupAttention) biases(before []int) func(batch, head int) attention.Mask[float32] {
	if p.bias == nil {
		return nil
	}
	return func(batch, head int) attention.Mask[float32] {
		add, dropped := maskFor[float32](p.bias, batch, head), before[batch]-p.cachedTokens(before[batch])
		return func(scores []float32, query, key int) { add(scores, query, key+dropped) }
	}
}

// visibleKeys is the range of keys that each query attends to, after that number of past tokens. In the first call a
// sequence may be shorter than others: the rest is padding.
func (p *groupAttention) visibleKeys(before, length int) attention.KeyRange {
	if p.bidirectional {
		return within(length, before, -1, -1)
	}
	left := int64(-1)
	if p.window > 0 {
		left = p.window - 1 // its own key is part of the window
	}
	return within(length, before, left, 0)
}

// rotate replaces queries and keys by rotated copies.
func (p *groupAttention) rotate(c *op.Call, m *groupMemory, before []int) error {
	if !p.rotates {
		return nil
	}
	positions := func(token int) int { return before[token/p.Queries] + token%p.Queries }
	if ids := op.Opt(c.In, groupPositions); ids != nil {
		given := ir.View[int64](ids)
		positions = func(token int) int {
			if p.firstCall { // only the first one of a first call is used
				return int(given[0]) + token%p.Queries
			}
			return int(given[token])
		}
	}
	// Checked for all tokens before any is rotated, as workers cannot return errors.
	rows := int(c.In[groupCos].Shape[0])
	for t := range p.batch * p.Queries {
		if at := positions(t); at < 0 || at >= rows {
			return fmt.Errorf("token %d has position %d, cos_cache has %d rows", t, at, rows)
		}
	}
	a := angles{cos: m.cos, sin: m.sin, pairs: p.pairs, row: positions}
	r := rotation{batch: p.batch, tokens: p.Queries, heads: p.heads, size: p.Size, from: p.q, to: p.y, pairs: p.pairs,
		interleaved: c.Bool("rotary_interleaved", false)}
	r.run(c.Pool, m.turnedQ, m.q, a)
	m.q, p.q = m.turnedQ, r.to
	// Keys have fewer heads, and the same angles.
	r.heads, r.from, r.to = p.kvHeads, p.keys, packed(p.kvHeads, p.Queries, p.Size)
	r.run(c.Pool, m.turnedK, m.k, a)
	m.k, p.keys = m.turnedK, r.to
	return nil
}
