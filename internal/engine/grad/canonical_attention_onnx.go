package grad

import "github.com/mcompress/mcompress/ir"

// headAttention rewrites ONNX's Attention to attention that stores no scores. Not supported are scores as an output,
// lengths of sequences, and trained masks.
func headAttention(t *Tape, n *ir.Node) bool {
	if n.Input(6) != nil || isOutputUsed(n, 3) {
		return false
	}
	q, k, v := t.Shape(n.Input(0)), t.Shape(n.Input(1)), t.Shape(n.Input(2))
	if len(q) < 3 || len(k) != len(q) || len(v) != len(q) {
		return false
	}
	split := len(q) == 4
	m := &multihead{
		inserter: inserter{t.Builder, n}, isTrained: t.Needs, batch: q[0], zeros: true,
		softcap: n.Float("softcap", 0), scale: n.Float("scale", 0),
		left: n.Int("left_window_size", -1), right: n.Int("right_window_size", -1),
	}
	if n.Int("is_causal", 0) != 0 {
		m.right = 0
	}
	if split {
		m.heads, m.kvHeads, m.queries, m.keys, m.size, m.value = q[1], k[1], q[2], k[2], q[3], v[3]
		m.q, m.k, m.v = headsView{n.Input(0), true}, headsView{n.Input(1), true}, headsView{n.Input(2), true}
	} else {
		m.heads, m.kvHeads = n.Int("q_num_heads", 0), n.Int("kv_num_heads", 0)
		if m.heads < 1 || m.kvHeads < 1 {
			return false
		}
		m.queries, m.keys, m.size, m.value = q[1], k[1], q[2]/m.heads, v[2]/m.kvHeads
		m.q, m.k, m.v = m.rows(n.Input(0), m.queries, m.heads, m.size), m.rows(n.Input(1), m.keys, m.kvHeads, m.size),
			m.rows(n.Input(2), m.keys, m.kvHeads, m.value)
	}
	if m.kvHeads < 1 || m.heads%m.kvHeads != 0 || !m.setPast(n.Input(4), n.Input(5)) || n.Input(3) != nil &&
		!m.addBias(n.Input(3)) {
		return false
	}
	m.present(1, 2)
	replaceOutput(n, 0, m.attend(split))
	return true
}
