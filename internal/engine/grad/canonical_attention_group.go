package grad

import "github.com/mcompress/mcompress/ir"

// groupQueryAttention rewrites com.microsoft's GroupQueryAttention on whole prompts: there are no past keys and values.
// Not supported are attention sinks, quantized caches, and scores as an output.
func groupQueryAttention(t *Tape, n *ir.Node) bool {
	q, heads, kv := t.Shape(n.Input(0)), n.Int("num_heads", 0), n.Int("kv_num_heads", 0)
	if len(q) != 3 || heads < 1 || kv < 1 || heads%kv != 0 || !isPrompt(t, n) || n.Int("smooth_softmax", 0) != 0 ||
		isOutputUsed(n, 3) {
		return false
	}
	for i := 11; i < len(n.Inputs()); i++ {
		if n.Input(i) != nil {
			return false
		}
	}
	m := contribHeads(t, n, q[0], q[1], heads)
	m.kvHeads, m.keys, m.softcap, m.zeros = kv, q[1], n.Float("softcap", 0), true
	parts := []*ir.Value{n.Input(0), n.Input(1), n.Input(2)}
	m.size = q[2] / heads
	if parts[1] == nil {
		m.size = q[2] / (heads + 2*kv)
		parts = m.nodes(ir.OpID{Domain: newest, Type: "Split"}, 3,
			[]*ir.Value{n.Input(0), t.Ints(heads*m.size, kv*m.size, kv*m.size)}, []*ir.Attr{ir.IntAttr("axis", 2)})
	}
	m.value = m.size
	if n.Int("causal", 1) != 0 {
		m.right = 0
		if w := n.Int("local_window_size", -1); w > 0 {
			// local_window_size counts the key of the query's own position, left only those before it.
			m.left = w - 1
		}
	}
	if bias := n.Input(10); bias != nil && !m.addBias(bias) {
		return false
	}
	m.hidePadding()
	if n.Int("do_rotary", 0) != 0 {
		parts[0], parts[1] = m.rotate(parts[0], heads), m.rotate(parts[1], kv)
	}
	m.q, m.k, m.v = m.rows(parts[0], m.queries, heads, m.size), m.rows(parts[1], m.keys, kv, m.size),
		m.rows(parts[2], m.keys, kv, m.size)
	m.present(1, 2)
	replaceOutput(n, 0, m.attend(false))
	return true
}

// isPrompt reports whether the caches of past keys and values are absent or empty.
func isPrompt(t *Tape, n *ir.Node) bool {
	for _, i := range []int{3, 4} {
		if v := n.Input(i); v != nil && (len(t.Shape(v)) != 4 || t.Shape(v)[2] != 0) {
			return false
		}
	}
	return true
}

// hidePadding masks keys after the end of each sequence, at index seqlens_k.
func (m *multihead) hidePadding() {
	dt, last := m.DType(m.at.Input(0)), m.at.Input(5)
	// seqlens_k is the index of the last key, before compares with a number of keys.
	one := m.op("Cast", []*ir.Value{m.Ints(1)}, ir.IntAttr("to", int64(ir.Int32)))
	open := m.before(m.op("Add", []*ir.Value{m.reshape(last, m.batch), one}))
	hidden := -1e30 // finite, so that queries after the end, whose windows may have hidden keys only, have gradients
	m.addMask(m.op("Where", []*ir.Value{open, m.Scalar(dt, 0), m.Scalar(dt, hidden)}), m.batch, 1, 1, m.keys)
}

// rotate applies rotary positions, which count from the first one of position_ids.
func (m *multihead) rotate(v *ir.Value, heads int64) *ir.Value {
	n, start := m.at, m.Ints(0)
	if ids := n.Input(9); ids != nil {
		start = m.op("Slice", []*ir.Value{m.reshape(ids, -1), m.Ints(0), m.Ints(1)})
	}
	cos := m.Shape(n.Input(7))
	attrs := []*ir.Attr{
		ir.IntAttr("num_heads", heads), ir.IntAttr("rotary_embedding_dim", 2*cos[len(cos)-1]),
		ir.IntAttr("interleaved", n.Int("rotary_interleaved", 0)),
	}
	return m.nodes(ir.OpID{Domain: microsoft, Type: "RotaryEmbedding"}, 1,
		[]*ir.Value{v, start, n.Input(7), n.Input(8)}, attrs)[0]
}
