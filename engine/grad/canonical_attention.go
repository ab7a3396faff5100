package grad

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// selfAttention is com.microsoft's Attention as the product that makes queries, keys and values, and attention that keeps no
// scores. Forms with states that are written in place, or with rotated positions, stay.
func selfAttention(t *Tape, n *ir.Node) bool {
	x, w := t.Shape(n.Input(0)), t.Shape(n.Input(1))
	heads := n.Int("num_heads", 0)
	if len(x) != 3 || len(w) != 2 || heads < 1 || w[1]%(3*heads) != 0 || n.Attr("qkv_hidden_sizes") != nil || n.Int("do_rotary", 0) != 0 {
		return false
	}
	if n.Input(5) != nil || n.Input(6) != nil || n.Input(3) != nil && len(t.Shape(n.Input(3))) != 2 {
		return false
	}
	s := selfish{builder: builder{t, n}, batch: x[0], queries: x[1], heads: heads, size: w[1] / 3 / heads, keys: x[1]}
	qkv := s.op("MatMul", []*ir.Value{n.Input(0), n.Input(1)})
	if n.Input(2) != nil {
		qkv = s.op("Add", []*ir.Value{qkv, n.Input(2)})
	}
	third := heads * s.size
	parts := s.nodes(ir.OpID{Domain: newest, Type: "Split"}, 3, []*ir.Value{qkv, t.Ints(third, third, third)}, []*ir.Attr{ir.IntAttr("axis", 2)})
	for i, v := range parts {
		parts[i] = s.reshape(v, s.batch, s.queries, heads, s.size)
	}
	s.attend(parts)
	return true
}

// A selfish is one such node.
type selfish struct {
	builder
	batch, heads, size, queries, keys int64
}

// attend puts keys and values behind those of the past, and makes the result.
func (s *selfish) attend(parts []*ir.Value) {
	attrs := []*ir.Attr{ir.IntsAttr("permQ", 0, 2, 1, 3), ir.IntsAttr("permY", 0, 2, 1, 3)}
	if past := s.at.Input(4); past != nil || isRead(s.at, 1) {
		for i := range 2 {
			v := s.op("Transpose", []*ir.Value{parts[i+1]}, ir.IntsAttr("perm", 0, 2, 1, 3))
			if past != nil {
				s.keys = s.queries + s.Shape(past)[3]
				before := s.op("Gather", []*ir.Value{past, s.Ints(int64(i))})
				v = s.op("Concat", []*ir.Value{s.reshape(before, s.batch, s.heads, s.keys-s.queries, s.size), v}, ir.IntAttr("axis", 2))
			}
			parts[i+1] = v
		}
		s.present(parts[1:])
	} else {
		attrs = append(attrs, ir.IntsAttr("permK", 0, 2, 1, 3), ir.IntsAttr("permV", 0, 2, 1, 3))
	}
	scale := s.at.Float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(s.size)))
	}
	in := append(parts, s.mask())
	y := s.nodes(ir.OpID{Domain: own, Type: "AttentionKeep"}, 2, in, append(attrs, ir.FloatAttr("scale", scale)))[0]
	becomes(s.at, 0, s.reshape(y, s.batch, s.queries, s.heads*s.size))
}

// present is keys and values as one tensor, for who generates what follows.
func (s *selfish) present(kv []*ir.Value) {
	if !isRead(s.at, 1) {
		return
	}
	both := make([]*ir.Value, 2)
	for i, v := range kv {
		both[i] = s.reshape(v, 1, s.batch, s.heads, s.keys, s.size)
	}
	becomes(s.at, 1, s.op("Concat", both, ir.IntAttr("axis", 0)))
}

// mask is what is added to scores: nothing for a key that input 3 has a number for and, in one direction, that is not behind
// the query. It is nil if there is none.
func (s *selfish) mask() *ir.Value {
	dt := s.DType(s.at.Input(0))
	var masks []*ir.Value
	if v := s.at.Input(3); v != nil {
		open := s.op("Greater", []*ir.Value{v, s.op("Cast", []*ir.Value{s.Ints(0)}, ir.IntAttr("to", int64(s.DType(v))))})
		filter := s.Scalar(dt, float64(s.at.Float("mask_filter_value", -10000)))
		masks = append(masks, s.reshape(s.op("Where", []*ir.Value{open, s.Scalar(dt, 0), filter}), s.batch, 1, 1, s.keys))
	}
	if s.at.Int("unidirectional", 0) != 0 {
		hidden := s.op("Expand", []*ir.Value{s.Scalar(dt, -math.MaxFloat32), s.Ints(s.queries, s.keys)})
		masks = append(masks, s.op("Trilu", []*ir.Value{hidden, s.op("Squeeze", []*ir.Value{s.Ints(s.keys - s.queries + 1)})}))
	}
	switch len(masks) {
	case 0:
		return nil
	case 1:
		return masks[0]
	}
	return s.op("Min", masks)
}
