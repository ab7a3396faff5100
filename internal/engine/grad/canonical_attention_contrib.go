package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// selfAttention decomposes com.microsoft's Attention into the projection to queries, keys and values and attention that stores no scores.
// Forms with states written in place, or with rotary positions, are not supported.
func selfAttention(t *Tape, n *ir.Node) bool {
	x, w := t.Shape(n.Input(0)), t.Shape(n.Input(1))
	heads := n.Int("num_heads", 0)
	if len(x) != 3 || len(w) != 2 || heads < 1 || w[1]%(3*heads) != 0 || n.Attr("qkv_hidden_sizes") != nil || n.Int("do_rotary", 0) != 0 {
		return false
	}
	a := contribAttention{inserter: inserter{t, n}, batch: x[0], queries: x[1], heads: heads, size: w[1] / 3 / heads, keys: x[1]}
	if past := n.Input(4); past != nil {
		a.keys += t.Shape(past)[3]
	}
	if mask := n.Input(3); mask != nil && !slices.Equal(t.Shape(mask), []int64{a.batch, a.keys}) || n.Input(5) != nil || n.Input(6) != nil {
		return false
	}
	qkv := a.op("MatMul", []*ir.Value{n.Input(0), n.Input(1)})
	if n.Input(2) != nil {
		qkv = a.op("Add", []*ir.Value{qkv, n.Input(2)})
	}
	third := heads * a.size
	parts := a.nodes(ir.OpID{Domain: newest, Type: "Split"}, 3, []*ir.Value{qkv, t.Ints(third, third, third)}, []*ir.Attr{ir.IntAttr("axis", 2)})
	for i, v := range parts {
		parts[i] = a.reshape(v, a.batch, a.queries, heads, a.size)
	}
	a.attend(parts)
	return true
}

// A contribAttention is a node of com.microsoft's Attention.
type contribAttention struct {
	inserter
	batch, heads, size, queries, keys int64
}

// attend concatenates past and new keys and values, and computes the result.
func (a *contribAttention) attend(parts []*ir.Value) {
	attrs := []*ir.Attr{ir.IntsAttr("permQ", 0, 2, 1, 3), ir.IntsAttr("permY", 0, 2, 1, 3)}
	if past := a.at.Input(4); past != nil || isOutputUsed(a.at, 1) {
		for i := range 2 {
			v := a.op("Transpose", []*ir.Value{parts[i+1]}, ir.IntsAttr("perm", 0, 2, 1, 3))
			if past != nil {
				before := a.op("Gather", []*ir.Value{past, a.Ints(int64(i))})
				v = a.op("Concat", []*ir.Value{a.reshape(before, a.batch, a.heads, a.keys-a.queries, a.size), v}, ir.IntAttr("axis", 2))
			}
			parts[i+1] = v
		}
		a.present(parts[1:])
	} else {
		attrs = append(attrs, ir.IntsAttr("permK", 0, 2, 1, 3), ir.IntsAttr("permV", 0, 2, 1, 3))
	}
	scale := a.at.Float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(a.size)))
	}
	in := append(parts, a.mask())
	y := a.nodes(ir.OpID{Domain: own, Type: "AttentionKeep"}, 2, in, append(attrs, ir.FloatAttr("scale", scale)))[0]
	replaceOutput(a.at, 0, a.reshape(y, a.batch, a.queries, a.heads*a.size))
}

// present returns keys and values as one tensor, the output present.
func (a *contribAttention) present(kv []*ir.Value) {
	if !isOutputUsed(a.at, 1) {
		return
	}
	both := make([]*ir.Value, 2)
	for i, v := range kv {
		both[i] = a.reshape(v, 1, a.batch, a.heads, a.keys, a.size)
	}
	replaceOutput(a.at, 1, a.op("Concat", both, ir.IntAttr("axis", 0)))
}

// mask returns the additive mask of the scores: zero for keys that input 3 selects and, if unidirectional, that do not follow the query.
// It is nil if there is none.
func (a *contribAttention) mask() *ir.Value {
	dt := a.DType(a.at.Input(0))
	var masks []*ir.Value
	if v := a.at.Input(3); v != nil {
		open := a.op("Greater", []*ir.Value{v, a.op("Cast", []*ir.Value{a.Ints(0)}, ir.IntAttr("to", int64(a.DType(v))))})
		filter := a.Scalar(dt, float64(a.at.Float("mask_filter_value", -10000)))
		masks = append(masks, a.reshape(a.op("Where", []*ir.Value{open, a.Scalar(dt, 0), filter}), a.batch, 1, 1, a.keys))
	}
	if a.at.Int("unidirectional", 0) != 0 {
		hidden := a.op("Expand", []*ir.Value{a.Scalar(dt, -math.MaxFloat32), a.Ints(a.queries, a.keys)})
		masks = append(masks, a.op("Trilu", []*ir.Value{hidden, a.op("Squeeze", []*ir.Value{a.Ints(a.keys - a.queries + 1)})}))
	}
	switch len(masks) {
	case 0:
		return nil
	case 1:
		return masks[0]
	}
	return a.op("Min", masks)
}
