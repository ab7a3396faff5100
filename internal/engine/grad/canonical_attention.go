package grad

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// attentions are the rule of the operator that rewrites build, and the reasons why they refuse others.
var attentions = []rule{
	{Domain: own, Type: "AttentionKeep", Backward: func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
		in := []*ir.Value{n.Input(0), n.Input(1), n.Input(2), n.Input(3), n.Outputs[0], n.Outputs[1], dy[0]}
		return t.Own("AttentionGrad", 3, in, n.Attrs...), nil
	}},
	{Type: "Attention", Backward: refusal("lengths of sequences, scores as an output and trained masks")},
	{Domain: microsoft, Type: "Attention", Backward: refusal("rotary positions, shared buffers and trained masks")},
	{Domain: microsoft, Type: "MultiHeadAttention",
		Backward: refusal("shared buffers, scores as an output and trained masks")},
	{Domain: microsoft, Type: "GroupQueryAttention",
		Backward: refusal("a past that is not empty, attention sinks, quantized caches, scores as an output and " +
			"trained masks")},
}

// refusal is the gradient of an operator that no rewrite replaced.
func refusal(forms string) gradient {
	return func(*Tape, *ir.Node, []*ir.Value) ([]*ir.Value, error) {
		return nil, fmt.Errorf("the gradient of this form is not supported (not supported are %s); exclude the weights "+
			"before it from training", forms)
	}
}

// attentionOf fuses MatMul(Softmax(scale·MatMul(Q, K) + mask), V) into one operator that stores no scores (Dao et al.,
// FlashAttention, 2022, arXiv:2205.14135). Transpositions of its inputs and output become permutations of axes. n is
// the second MatMul. A trained mask, such as a position bias, is not fused.
func attentionOf(t *Tape, n *ir.Node) bool {
	weights := n.Input(0)
	// Without the input training_mode, Dropout is the identity.
	for is(weights.Producer(), "", "Identity", "Dropout") && weights.OnlyConsumer() != nil &&
		weights.Producer().Input(2) == nil {
		weights = weights.Producer().Input(0)
	}
	soft := weights.Producer()
	if !is(soft, "", "Softmax") || weights.OnlyConsumer() == nil || !isLastAxisSoftmax(t, soft) {
		return false
	}
	a := attention{Tape: t, scale: 1}
	if !a.scores(soft.Input(0)) {
		return false
	}
	a.v = a.side(n.Input(1), false)
	if !a.fits() {
		return false
	}
	a.replace(n)
	return true
}

// isLastAxisSoftmax reports whether n is a softmax over the last axis only.
func isLastAxisSoftmax(t *Tape, n *ir.Node) bool {
	rank, axis := len(t.Shape(n.Input(0))), int64(-1)
	// Before opset 13 the default axis is 1, and one softmax covers all axes from it on.
	if n.Op.Domain != newest && n.Graph().Opset("") < 13 {
		axis = 1
	}
	return rank > 0 && fromFront(n.Int("axis", axis), rank) == int64(rank-1)
}

// attention is a match of the pattern.
type attention struct {
	*Tape
	q, k, v permutedValue
	mask    *ir.Value
	scale   float64
}

// A permutedValue is a value with permuted axes; a nil permutation is the identity.
type permutedValue struct {
	v    *ir.Value
	perm []int64
}

// scores matches the scores: a product times numbers, with or without the sum with a mask.
func (a *attention) scores(v *ir.Value) bool {
	if v.OnlyConsumer() == nil {
		return false
	}
	sum := v.Producer()
	if !is(sum, "", "Add") {
		return a.product(v)
	}
	for i := range 2 {
		// AttentionGrad has no gradient of the mask.
		if mask := sum.Input(1 - i); !a.Needs(mask) && sum.Input(i).OnlyConsumer() != nil && a.product(sum.Input(i)) {
			a.mask = mask
			// A mask may be repeated along the scores, but not the scores along the mask.
			return slices.Equal(a.Shape(v), a.Shape(sum.Input(i)))
		}
	}
	return false
}

// product matches the product of queries and keys.
func (a *attention) product(v *ir.Value) bool {
	// A failed match has multiplied the scale already, and scores tries the other operand of the sum next.
	before := *a
	for {
		from, by := splitScale(a.Tape, v.Producer())
		if from == nil || from.OnlyConsumer() == nil {
			break
		}
		v, a.scale = from, a.scale*by
	}
	if !is(v.Producer(), "", "MatMul") {
		*a = before
		return false
	}
	// A factor of queries or keys is one of the scores; one of the values would not be.
	a.q, a.k = a.side(v.Producer().Input(0), true), a.side(v.Producer().Input(1), true)
	return true
}

// splitScale returns x and c if n is x·c or x/(1/c).
func splitScale(t *Tape, n *ir.Node) (*ir.Value, float64) {
	if !is(n, "", "Mul", "Div") {
		return nil, 0
	}
	// A constant of one element, but of more axes, would add axes to the result.
	if c, ok := t.elements.scalar(n.Input(1)); ok && len(t.Shape(n.Input(1))) <= len(t.Shape(n.Input(0))) {
		if n.Op.Type == "Div" {
			c = 1 / c
		}
		return n.Input(0), c
	}
	if c, ok := t.elements.scalar(n.Input(0)); ok && n.Op.Type == "Mul" &&
		len(t.Shape(n.Input(0))) <= len(t.Shape(n.Input(1))) {
		return n.Input(1), c
	}
	return nil, 0
}

// side matches an operand: it skips transpositions, and factors if scales is set.
func (a *attention) side(v *ir.Value, scales bool) permutedValue {
	var perm []int64
	for {
		if from, by := splitScale(a.Tape, v.Producer()); scales && from != nil {
			v, a.scale = from, a.scale*by
			continue
		}
		p := v.Producer()
		if !is(p, "", "Transpose") {
			return permutedValue{v, perm}
		}
		perm = compose(permOf(p, len(a.Shape(v))), perm)
		v = p.Input(0)
	}
}

// compose returns the composition of two permutations; nil is the identity.
func compose(first, second []int64) []int64 {
	if second == nil {
		return first
	}
	out := make([]int64, len(second))
	for i, p := range second {
		out[i] = first[p]
	}
	return out
}

// shape returns the permuted shape.
func (a *attention) shape(o permutedValue) []int64 {
	return permuteShape(a.Shape(o.v), o.perm)
}

func permuteShape(shape, perm []int64) []int64 {
	if perm == nil {
		return shape
	}
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = shape[p]
	}
	return out
}

// fits reports whether the operator supports the match: stacks of the same axes, of one type, and a mask that
// broadcasts along some of them.
func (a *attention) fits() bool {
	q, k, v := a.shape(a.q), a.shape(a.k), a.shape(a.v)
	r := len(q)
	if r < 2 || len(k) != r || len(v) != r || !slices.Equal(q[:r-2], k[:r-2]) || !slices.Equal(q[:r-2], v[:r-2]) {
		return false
	}
	dt := a.DType(a.q.v)
	if dt != a.DType(a.k.v) || dt != a.DType(a.v.v) || dt != ir.Float && dt != ir.Double {
		return false
	}
	return a.mask == nil || a.DType(a.mask) == dt && len(a.Shape(a.mask)) <= r
}

// replace replaces n and the transposition of its result by the operator. n consumes the keys in columns.
func (a *attention) replace(n *ir.Node) {
	r := len(a.Shape(n.Outputs[0]))
	swapped := identityPermutation(r)
	swapped[r-2], swapped[r-1] = swapped[r-1], swapped[r-2]
	if a.k.perm == nil {
		a.k.perm = identityPermutation(r)
	}
	a.k.perm = compose(a.k.perm, swapped)
	last, attrs := n, []*ir.Attr{ir.FloatAttr("scale", float32(a.scale))}
	if next := n.Outputs[0].OnlyConsumer(); is(next, "", "Transpose") {
		if perm := permOf(next, r); perm[r-1] == int64(r-1) {
			last, attrs = next, append(attrs, ir.IntsAttr("permY", perm...))
		}
	}
	if a.replaceGrouped(n, last, a.k) {
		return
	}
	b := inserter{a.Builder, last}
	in := []*ir.Value{nil, nil, nil, a.mask}
	for i, side := range []permutedValue{a.q, a.k, a.v} {
		in[i] = side.v
		switch {
		case side.perm == nil:
		// The operator reads rows as contiguous vectors: a permutation that moves the last axis stays a node.
		case side.perm[r-1] == int64(r-1):
			attrs = append(attrs, ir.IntsAttr("perm"+"QKV"[i:i+1], side.perm...))
		default: // rows are not contiguous
			in[i] = b.op("Transpose", []*ir.Value{side.v}, ir.IntsAttr("perm", side.perm...))
		}
	}
	replaceOutput(last, 0, b.nodes(ir.OpID{Domain: own, Type: "AttentionKeep"}, 2, in, attrs)[0])
}

func identityPermutation(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}
