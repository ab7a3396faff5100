package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// headAttention rewrites ONNX's Attention to attention that stores no scores. Forms with a past, with bounded scores, or with fewer key
// than query heads are not supported.
func headAttention(t *Tape, n *ir.Node) bool {
	if n.Input(4) != nil || n.Input(5) != nil || n.Input(6) != nil || n.Float("softcap", 0) != 0 || isOutputUsed(n, 1) || isOutputUsed(n, 2) || isOutputUsed(n, 3) {
		return false
	}
	b := inserter{t, n}
	in, attrs := slices.Clone(n.Inputs()[:3]), []*ir.Attr{ir.IntAttr("zeros", 1)}
	q, k := t.Shape(in[0]), t.Shape(in[1])
	heads, size := int64(0), int64(0)
	switch {
	case len(q) == 4 && q[1] == k[1]:
		heads, size = q[1], q[3]
	case len(q) == 3 && n.Int("q_num_heads", 0) > 0 && n.Int("q_num_heads", 0) == n.Int("kv_num_heads", 0):
		heads = n.Int("q_num_heads", 0)
		size = q[2] / heads
	default:
		return false
	}
	queries, keys := q[len(q)-2], k[len(k)-2]
	if len(q) == 3 {
		queries, keys = q[1], k[1]
	}
	mask, ok := b.headMask([]int64{q[0], heads, queries, keys})
	if !ok {
		return false
	}
	if len(q) == 3 {
		for i, v := range in {
			s := t.Shape(v)
			in[i] = b.reshape(v, s[0], s[1], heads, s[2]/heads)
			attrs = append(attrs, ir.IntsAttr("perm"+"QKV"[i:i+1], 0, 2, 1, 3))
		}
		attrs = append(attrs, ir.IntsAttr("permY", 0, 2, 1, 3))
	}
	attrs = append(attrs, ir.FloatAttr("scale", n.Float("scale", float32(1/math.Sqrt(float64(size))))))
	y := b.nodes(ir.OpID{Domain: own, Type: "AttentionKeep"}, 2, append(in, mask), attrs)[0]
	replaceOutput(n, 0, b.reshape(y, t.Shape(n.Outputs[0])...))
	return true
}

// headMask returns the additive mask for scores of that shape, nil without a mask. It is false for masks of another form.
func (b inserter) headMask(scores []int64) (*ir.Value, bool) {
	dt, mask := b.DType(b.at.Input(0)), b.at.Input(3)
	inf := b.Scalar(dt, math.Inf(-1))
	if mask != nil {
		shape := b.Shape(mask)
		for i, d := range shape {
			if at := len(scores) - len(shape) + i; at < 0 || d != scores[at] && (d != 1 || i == len(shape)-1) {
				return nil, false
			}
		}
		if b.DType(mask) == ir.Bool {
			mask = b.op("Where", []*ir.Value{mask, b.Scalar(dt, 0), inf})
		} else if b.DType(mask) != dt || b.Needs(mask) {
			return nil, false
		}
	}
	if b.at.Int("is_causal", 0) == 0 {
		return mask, true
	}
	places := []*ir.Value{b.reshape(b.Ints(progression(sliceRange{0, 1, scores[2]})...), scores[2], 1), b.Ints(progression(sliceRange{0, 1, scores[3]})...)}
	after := b.op("Where", []*ir.Value{b.op("Less", places), inf, b.Scalar(dt, 0)})
	if mask == nil {
		return after, true
	}
	return b.op("Add", []*ir.Value{mask, after}), true
}
