package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// multihead builds attention that stores no scores, from operands with an axis of heads. The node that it replaces is
// at.
type multihead struct {
	inserter
	batch, queries, keys int64 // keys includes past ones
	heads, kvHeads       int64
	size, value          int64     // elements of a query or key, and of a value
	q, k, v              headsView // before the past is prepended
	pastKey, pastValue   *ir.Value // [batch, kvHeads, past, size]; nil for none
	past                 int64
	masks                []*ir.Value // added to scores, broadcast to [batch, heads, queries, keys]
	scale                float32     // 0 for 1/√size
	softcap              float32
	// keys before and after the position of a query, which follows the past; negative for all
	left, right int64
	zeros       bool                 // without visible key the result is zero, not NaN
	isTrained   func(*ir.Value) bool // reports whether the gradient of a value is needed
}

// A headsView is a tensor with an axis of heads: [batch, tokens, heads, size], or if split [batch, heads, tokens,
// size].
type headsView struct {
	v     *ir.Value
	split bool
}

// rows views a tensor [batch, tokens, heads·size].
func (m *multihead) rows(v *ir.Value, tokens, heads, size int64) headsView {
	return headsView{m.reshape(v, m.batch, tokens, heads, size), false}
}

// setPast sets keys and values of past tokens, of which there may be none. It is false if only one of them is given.
func (m *multihead) setPast(key, value *ir.Value) bool {
	if key == nil || value == nil {
		return key == value
	}
	if s := m.Shape(key); len(s) == 4 && s[2] > 0 {
		m.pastKey, m.pastValue, m.past = key, value, s[2]
		m.keys += s[2]
	}
	return true
}

// present makes keys and values split tensors with the past, and replaces these outputs of the node by them.
func (m *multihead) present(key, value int) {
	// Otherwise attention reads keys in the layout of the projection: no Transpose, and nothing of their size is
	// copied.
	if m.past == 0 && !isOutputUsed(m.at, key) && !isOutputUsed(m.at, value) {
		return
	}
	for i, h := range []*headsView{&m.k, &m.v} {
		if !h.split {
			*h = headsView{m.op("Transpose", []*ir.Value{h.v}, ir.IntsAttr("perm", 0, 2, 1, 3)), true}
		}
		if past := []*ir.Value{m.pastKey, m.pastValue}[i]; past != nil {
			h.v = m.op("Concat", []*ir.Value{past, h.v}, ir.IntAttr("axis", 2))
		}
	}
	m.replacePresent(key, m.k.v)
	m.replacePresent(value, m.v.v)
}

// replacePresent replaces an output by a copy of v, which may have the name of another value already.
func (m *multihead) replacePresent(i int, v *ir.Value) {
	if isOutputUsed(m.at, i) {
		replaceOutput(m.at, i, m.op("Identity", []*ir.Value{v}))
	}
}

// attend returns the result, [batch, queries, heads·value] or if split [batch, heads, queries, value].
func (m *multihead) attend(split bool) *ir.Value {
	group := m.heads / m.kvHeads
	attrs := []*ir.Attr{ir.FloatAttr("scale", m.scale), ir.IntAttr("left_window_size", m.left),
		ir.IntAttr("right_window_size", m.right), ir.IntAttr("offset", m.past)}
	if m.scale == 0 {
		// The default of all three operators; AttentionKeep itself has the default 1.
		attrs[0] = ir.FloatAttr("scale", float32(1/math.Sqrt(float64(m.size))))
	}
	if m.softcap != 0 {
		attrs = append(attrs, ir.FloatAttr("softcap", m.softcap))
	}
	if m.zeros {
		attrs = append(attrs, ir.IntAttr("zeros", 1))
	}
	in := []*ir.Value{nil, nil, nil, m.mask()}
	for i, h := range []headsView{m.q, m.k, m.v} {
		each := group
		if i > 0 {
			each = 1
		}
		var perm []int64
		if in[i], perm = m.groupHeads(h, each, group); perm != nil {
			attrs = append(attrs, ir.IntsAttr("perm"+"QKV"[i:i+1], perm...))
		}
	}
	shape := []int64{m.batch, m.queries, m.heads * m.value}
	switch {
	case split:
		shape = []int64{m.batch, m.heads, m.queries, m.value}
	case group == 1:
		attrs = append(attrs, ir.IntsAttr("permY", 0, 2, 1, 3))
	default:
		attrs = append(attrs, ir.IntsAttr("permY", 0, 3, 1, 2, 4))
	}
	return m.reshape(m.nodes(ir.OpID{Domain: own, Type: "AttentionKeep"}, 2, in, attrs)[0], shape...)
}

// groupHeads returns h with its axis of heads divided into groups, unless these have one head, and the permutation
// of its axes to those of a stack of matrices; nil for the identity. each is the number of heads per group, group
// that of the queries.
func (m *multihead) groupHeads(h headsView, each, group int64) (*ir.Value, []int64) {
	v := h.v
	if group > 1 {
		at := 2
		if h.split {
			at = 1
		}
		shape := slices.Clone(m.viewShape(h))
		shape[at] /= each
		v = m.reshape(v, slices.Insert(shape, at+1, each)...)
	}
	switch {
	case h.split:
		return v, nil
	case group > 1:
		return v, []int64{0, 2, 3, 1, 4}
	}
	return v, []int64{0, 2, 1, 3}
}

// viewShape is the shape of an operand, whose value may be new.
func (m *multihead) viewShape(h headsView) []int64 {
	tokens, heads, size := m.keys, m.kvHeads, m.size
	switch h {
	case m.q:
		tokens, heads = m.queries, m.heads
	case m.v:
		size = m.value
	}
	if h.split {
		return []int64{m.batch, heads, tokens, size}
	}
	return []int64{m.batch, tokens, heads, size}
}

// addMask adds a mask of four axes.
func (m *multihead) addMask(v *ir.Value, shape ...int64) {
	if group := m.heads / m.kvHeads; group > 1 {
		shape = slices.Clone(shape)
		if shape[1] == 1 {
			shape = slices.Insert(shape, 2, 1)
		} else {
			shape[1] /= group
			shape = slices.Insert(shape, 2, group)
		}
	}
	m.masks = append(m.masks, m.reshape(v, shape...))
}

// mask returns the sum of the masks, nil without any.
func (m *multihead) mask() *ir.Value {
	var sum *ir.Value
	for _, v := range m.masks {
		if sum == nil {
			sum = v
		} else {
			sum = m.op("Add", []*ir.Value{sum, v})
		}
	}
	return sum
}

// addBias adds a mask of fixed numbers with at most four axes. It is false for a trained one and for those that do not
// broadcast to the scores; shorter ones along the keys are not supported.
func (m *multihead) addBias(v *ir.Value) bool {
	shape := m.Shape(v)
	if len(shape) > 4 || m.isTrained(v) {
		return false
	}
	shape = append(slices.Repeat([]int64{1}, 4-len(shape)), shape...)
	for i, d := range []int64{m.batch, m.heads, m.queries, m.keys} {
		// The kernel reads rows of the mask as vectors of all keys; a scalar is repeated by the reshape.
		if shape[i] != d && shape[i] != 1 || i == 3 && len(m.Shape(v)) > 0 && shape[i] != d {
			return false
		}
	}
	dt := m.DType(m.at.Input(0))
	switch m.DType(v) {
	case ir.Bool:
		v = m.op("Where", []*ir.Value{v, m.Scalar(dt, 0), m.Scalar(dt, math.Inf(-1))})
	case dt:
	default:
		return false
	}
	m.addMask(v, shape...)
	return true
}

// addFlags adds com.microsoft's mask_index or key_padding_mask: flags of keys [batch, keys], of pairs [batch, queries,
// keys] or of pairs of positions [batch, 1, positions, positions], or the number of keys of each batch. It is false for
// other forms.
func (m *multihead) addFlags(v *ir.Value) bool {
	shape, filter := m.Shape(v), m.at.Float("mask_filter_value", -10000)
	zero := m.op("Cast", []*ir.Value{m.Ints(0)}, ir.IntAttr("to", int64(m.DType(v))))
	to := []int64{m.batch, 1, 1, m.keys}
	var open *ir.Value
	switch {
	case slices.Equal(shape, []int64{m.batch, m.keys}):
		open = m.op("Greater", []*ir.Value{v, zero})
	case slices.Equal(shape, []int64{m.batch, m.queries, m.keys}):
		open, to[2] = m.op("Greater", []*ir.Value{v, zero}), m.queries
	case len(shape) == 4 && shape[0] == m.batch && shape[1] == 1 && shape[2] == shape[3] && shape[3] >= m.keys:
		// The mask is for the longest sequence. Queries are the last positions, after those of the past.
		v = m.op("Slice", []*ir.Value{v, m.Ints(m.keys-m.queries, 0), m.Ints(m.keys, m.keys), m.Ints(2, 3)})
		open, to[2] = m.op("Greater", []*ir.Value{v, zero}), m.queries
	case len(shape) == 1 && shape[0] == m.batch:
		open = m.before(v)
	default:
		return false
	}
	dt := m.DType(m.at.Input(0))
	m.addMask(m.op("Where", []*ir.Value{open, m.Scalar(dt, 0), m.Scalar(dt, float64(filter))}), to...)
	return true
}

// before reports for each batch which keys have an index below its element of v.
func (m *multihead) before(v *ir.Value) *ir.Value {
	ends := m.op("Cast", []*ir.Value{m.reshape(v, m.batch, 1)}, ir.IntAttr("to", int64(ir.Int64)))
	return m.op("Less", []*ir.Value{m.reshape(m.Ints(progression(sliceRange{0, 1, m.keys})...), 1, m.keys), ends})
}
