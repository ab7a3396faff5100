package grad

import "github.com/mcompress/mcompress/ir"

// selfAttention decomposes com.microsoft's Attention into the projection to queries, keys and values and attention that
// stores no scores. Forms with states written in place, or with rotary positions, are not supported.
func selfAttention(t *Tape, n *ir.Node) bool {
	x, w, heads := t.Shape(n.Input(0)), t.Shape(n.Input(1)), n.Int("num_heads", 0)
	if len(x) != 3 || len(w) != 2 || heads < 1 || n.Int("do_rotary", 0) != 0 || n.Input(6) != nil {
		return false
	}
	sizes := ints(n, "qkv_hidden_sizes")
	if sizes == nil {
		sizes = []int64{w[1] / 3, w[1] / 3, w[1] / 3}
	}
	if len(sizes) != 3 || sizes[0] != sizes[1] || sizes[0]%heads != 0 || sizes[2]%heads != 0 {
		return false
	}
	m := contribHeads(t, n, x[0], x[1], heads)
	m.keys, m.size, m.value = x[1], sizes[0]/heads, sizes[2]/heads
	// [2, batch, heads, past tokens, size]; in training decoders the past is usually empty.
	if past := n.Input(4); past != nil && t.Shape(past)[3] > 0 {
		s := t.Shape(past)
		part := func(i int64) *ir.Value {
			return m.reshape(m.op("Gather", []*ir.Value{past, m.Ints(i)}), s[1:]...)
		}
		m.pastKey, m.pastValue, m.past = part(0), part(1), s[3]
		m.keys += m.past
	}
	if !m.contribMasks(n.Input(3), n.Input(5)) {
		return false
	}
	qkv := m.op("MatMul", []*ir.Value{n.Input(0), n.Input(1)})
	if n.Input(2) != nil {
		qkv = m.op("Add", []*ir.Value{qkv, n.Input(2)})
	}
	parts := m.nodes(ir.OpID{Domain: newest, Type: "Split"}, 3, []*ir.Value{qkv, t.Ints(sizes...)},
		[]*ir.Attr{ir.IntAttr("axis", 2)})
	m.q, m.k, m.v = m.rows(parts[0], x[1], heads, m.size), m.rows(parts[1], x[1], heads, m.size),
		m.rows(parts[2], x[1], heads, m.value)
	m.joinPresent()
	replaceOutput(n, 0, m.attend(false))
	return true
}

// joinPresent replaces output present by keys and values as one tensor.
func (m *multihead) joinPresent() {
	if m.past == 0 && !isOutputUsed(m.at, 1) {
		return
	}
	both := make([]*ir.Value, 2)
	for i, h := range []*headsView{&m.k, &m.v} {
		h.v, h.split = m.op("Transpose", []*ir.Value{h.v}, ir.IntsAttr("perm", 0, 2, 1, 3)), true
		if m.past > 0 {
			h.v = m.op("Concat", []*ir.Value{[]*ir.Value{m.pastKey, m.pastValue}[i], h.v}, ir.IntAttr("axis", 2))
		}
	}
	if isOutputUsed(m.at, 1) {
		for i, v := range []*ir.Value{m.k.v, m.v.v} {
			both[i] = m.reshape(v, 1, m.batch, m.heads, m.keys, m.size)
		}
		replaceOutput(m.at, 1, m.op("Concat", both, ir.IntAttr("axis", 0)))
	}
}

// contribHeads is attention of one of com.microsoft's operators.
func contribHeads(t *Tape, n *ir.Node, batch, queries, heads int64) *multihead {
	m := &multihead{
		inserter: inserter{t.Builder, n}, isTrained: t.Needs, batch: batch, queries: queries, heads: heads,
		kvHeads: heads,
		left:    -1, right: -1, scale: n.Float("scale", 0),
	}
	if n.Int("unidirectional", 0) != 0 {
		m.right = 0
	}
	return m
}

// contribMasks adds the optional flags of keys and the bias of scores.
func (m *multihead) contribMasks(flags, bias *ir.Value) bool {
	if flags != nil && len(m.Shape(flags)) == 2 && m.Shape(flags)[1] == 1 && m.keys != 1 {
		flags = nil // masks nothing
	}
	return (flags == nil || m.addFlags(flags)) && (bias == nil || m.addBias(bias))
}

// crossAttention rewrites com.microsoft's MultiHeadAttention. A buffer of past and present, and scores as an output,
// are not supported.
func crossAttention(t *Tape, n *ir.Node) bool {
	q, heads := t.Shape(n.Input(0)), n.Int("num_heads", 0)
	if len(q) != 3 && len(q) != 5 || heads < 1 || n.Input(8) != nil || isOutputUsed(n, 3) {
		return false
	}
	m := contribHeads(t, n, q[0], q[1], heads)
	if !m.crossOperands(q) || !m.setPast(n.Input(6), n.Input(7)) || !m.contribMasks(n.Input(4), n.Input(5)) {
		return false
	}
	m.present(1, 2)
	replaceOutput(n, 0, m.attend(false))
	return true
}

// crossOperands sets queries, keys and values, some of which may be packed into one tensor, with their biases.
func (m *multihead) crossOperands(q []int64) bool {
	n, k, v := m.at, m.at.Input(1), m.at.Input(2)
	h := m.heads
	if len(q) == 5 { // [batch, tokens, heads, 3, size]
		m.keys, m.size, m.value = q[1], q[4], q[4]
		parts := m.unpack(n.Input(0), q)
		m.q, m.k, m.v = parts[0], parts[1], parts[2]
		return n.Input(3) == nil
	}
	if k == nil || q[2]%h != 0 {
		return false
	}
	m.size = q[2] / h
	m.q = m.rows(n.Input(0), m.queries, h, m.size)
	ks := m.Shape(k)
	switch {
	case len(ks) == 5 && v == nil: // [batch, tokens, heads, 2, size]
		m.keys, m.value = ks[1], m.size
		parts := m.unpack(k, ks)
		m.k, m.v = parts[0], parts[1]
	case v == nil:
		return false
	case len(ks) == 4:
		m.keys, m.value = ks[2], m.Shape(v)[3]
		m.k, m.v = headsView{k, true}, headsView{v, true}
	case len(ks) == 3:
		m.keys, m.value = ks[1], m.Shape(v)[2]/h
		m.k, m.v = m.rows(k, m.keys, h, m.size), m.rows(v, m.keys, h, m.value)
	default:
		return false
	}
	if n.Input(3) != nil {
		m.addOperandBiases(n.Input(3))
	}
	return true
}

// unpack splits a tensor [batch, tokens, heads, number, size] along its fourth axis.
func (m *multihead) unpack(v *ir.Value, shape []int64) []headsView {
	parts := m.nodes(ir.OpID{Domain: newest, Type: "Split"}, int(shape[3]), []*ir.Value{v},
		[]*ir.Attr{ir.IntAttr("axis", 3), ir.IntAttr("num_outputs", shape[3])})
	out := make([]headsView, len(parts))
	for i, p := range parts {
		out[i] = headsView{m.reshape(p, shape[0], shape[1], shape[2], shape[4]), false}
	}
	return out
}

// addOperandBiases adds the biases of queries, keys and values; keys and values that are split have none.
func (m *multihead) addOperandBiases(bias *ir.Value) {
	sizes := []int64{m.size, m.size, m.value}
	parts := m.nodes(ir.OpID{Domain: newest, Type: "Split"}, 3,
		[]*ir.Value{bias, m.Ints(m.heads*sizes[0], m.heads*sizes[1], m.heads*sizes[2])}, nil)
	for i, h := range []*headsView{&m.q, &m.k, &m.v} {
		if !h.split {
			h.v = m.op("Add", []*ir.Value{h.v, m.reshape(parts[i], m.heads, sizes[i])})
		}
	}
}
