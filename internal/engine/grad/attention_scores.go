package grad

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An AttentionLayer is attention of the canonical forward graph. Its methods append nodes that compute what the fused
// operator does not store; their batch axis is the first one and may have any size.
type AttentionLayer struct {
	Heads, Queries, Keys int64 // Heads is that of the queries

	t    *Tape
	node *ir.Node
}

// Attentions returns the attention of the forward graph, in order.
func (t *Tape) Attentions() []AttentionLayer {
	var list []AttentionLayer
	for n := range t.Graph().Nodes() {
		if is(n, own, "AttentionKeep") && len(t.Shape(n.Input(0))) > 2 {
			q := permuteShape(t.Shape(n.Input(0)), ints(n, "permQ"))
			k := permuteShape(t.Shape(n.Input(1)), ints(n, "permK"))
			r := len(q)
			list = append(list, AttentionLayer{op.Product(q[1 : r-2]), q[r-2], k[r-2], t, n})
		}
	}
	return list
}

// Before returns the values of vs that are computed before the attention.
func (a AttentionLayer) Before(vs []*ir.Value) []*ir.Value {
	at := a.t.positions()
	return slices.DeleteFunc(slices.Clone(vs), func(v *ir.Value) bool { return at[v.Producer()] >= at[a.node] })
}

// operand returns queries, keys or values (0, 1, 2) as a stack of matrices.
func (a AttentionLayer) operand(i int) (*ir.Value, []int64) {
	v, perm := a.node.Input(i), ints(a.node, "perm"+"QKV"[i:i+1])
	shape := permuteShape(a.t.Shape(v), perm)
	if perm != nil {
		v = a.t.Transpose(v, perm)
	}
	return v, shape
}

// Operand returns queries, keys or values (0, 1, 2), and its shape: [batch, heads, tokens, size].
func (a AttentionLayer) Operand(i int) (*ir.Value, []int64) {
	v, s := a.operand(i)
	r := len(s)
	shape := []int64{s[0], op.Product(s[1 : r-2]), s[r-2], s[r-1]}
	if r == 4 {
		return v, shape
	}
	return a.t.Reshape(v, append([]int64{-1}, shape[1:]...)), shape
}

// Mask returns the mask that is added to scores, [batch or 1, 1, queries or 1, keys], finite so that no row of scores
// has only infinite ones; nil if there is none or it differs between heads.
func (a AttentionLayer) Mask() *ir.Value {
	mask := a.node.Input(3)
	if mask == nil {
		return nil
	}
	s := a.t.Shape(mask)
	r := len(s)
	if r < 4 || op.Product(s[1:r-2]) != 1 {
		return nil
	}
	return a.t.Reshape(a.finite(mask), []int64{-1, 1, s[r-2], s[r-1]})
}

// hidden is the score of a masked key.
const hidden = -1e4

func (a AttentionLayer) finite(mask *ir.Value) *ir.Value {
	return a.t.Op("Max", []*ir.Value{mask, a.t.Scalar(a.t.DType(mask), hidden)})
}

// VisibleKeys returns 1 for keys that the last query may attend to, and 0 for others, which are padding: [batch or 1,
// keys]. It is nil without a mask of this form.
func (a AttentionLayer) VisibleKeys() *ir.Value {
	mask := a.Mask()
	if mask == nil {
		return nil
	}
	t, s := a.t, a.t.Shape(a.node.Input(3))
	if rows := s[len(s)-2]; rows > 1 {
		// With a causal mask the last query is the one that may attend to every key but padding.
		mask = t.Op("Slice", []*ir.Value{mask, t.Ints(rows - 1), t.Ints(rows), t.Ints(2)})
	}
	dt := t.DType(a.node.Input(3))
	open := t.Op("Greater", []*ir.Value{t.Reshape(mask, []int64{-1, a.Keys}), t.Scalar(dt, hidden/2)})
	return t.Cast(open, dt)
}

// Probabilities returns softmax(scale·Q·Kᵀ + mask), [batch, heads, queries, keys].
func (a AttentionLayer) Probabilities() *ir.Value {
	t, n := a.t, a.node
	q, shape := a.operand(0)
	k, _ := a.operand(1)
	dt := t.DType(n.Input(0))
	x := t.product(q, k, n.Float("scale", 1))
	if c := float64(n.Float("softcap", 0)); c != 0 {
		x = t.Scale(t.Op("Tanh", []*ir.Value{t.Scale(x, dt, 1/c)}), dt, c)
	}
	if n.Input(3) != nil {
		x = t.Op("Add", []*ir.Value{x, a.finite(n.Input(3))})
	}
	if w := a.window(dt); w != nil {
		x = t.Op("Add", []*ir.Value{x, w})
	}
	p := t.Op("Softmax", []*ir.Value{x}, ir.IntAttr("axis", -1))
	if len(shape) == 4 {
		return p
	}
	return t.Reshape(p, []int64{-1, a.Heads, a.Queries, a.Keys})
}

// product returns scale·A·Bᵀ of stacks of matrices.
func (b *Builder) product(x, y *ir.Value, scale float32) *ir.Value {
	return b.add(ir.OpID{Domain: microsoft, Type: "FusedMatMul"}, 1, []*ir.Value{x, y},
		[]*ir.Attr{ir.IntAttr("transB", 1), ir.FloatAttr("alpha", scale)})[0]
}

// window returns the mask of keys outside of the window of each query, nil if all are inside.
func (a AttentionLayer) window(dt ir.DType) *ir.Value {
	left, right, offset := a.node.Int("left_window_size", -1), a.node.Int("right_window_size", -1),
		a.node.Int("offset", 0)
	if left < 0 && right < 0 {
		return nil
	}
	rows := make([]float64, a.Queries*a.Keys)
	for i := range a.Queries {
		for j := range a.Keys {
			if d := j - i - offset; left >= 0 && -d > left || right >= 0 && d > right {
				// Finite, as in Mask: a row of only infinite scores has no softmax.
				rows[i*a.Keys+j] = hidden
			}
		}
	}
	c := ir.ArrayOf(rows, a.Queries, a.Keys)
	return a.t.Cast(a.t.Graph().AddConst("window", &ir.Tensor{Spec: c.Spec(), Source: ir.Mem(c.Data)}), dt)
}

// Relations returns X·Xᵀ/√size of vectors X, [batch, heads, tokens, size], whose concatenated heads are divided into a
// number of relation heads: [batch, relation heads, tokens, tokens] (Wang et al., MiniLMv2, 2021, arXiv:2012.15828,
// section 3.1).
func (b *Builder) Relations(x *ir.Value, shape []int64, relationHeads int64) *ir.Value {
	size := shape[1] * shape[3] / relationHeads
	if relationHeads != shape[1] {
		// Heads are concatenated per token before they are divided again: that student and teacher have the same number
		// of relation heads is what makes relations of different widths comparable.
		x = b.Reshape(b.Transpose(x, []int64{0, 2, 1, 3}), []int64{-1, shape[2], relationHeads, size})
		x = b.Transpose(x, []int64{0, 2, 1, 3})
	}
	return b.product(x, x, float32(1/math.Sqrt(float64(size))))
}
