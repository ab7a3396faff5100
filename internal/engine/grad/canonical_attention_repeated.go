package grad

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// replaceGrouped replaces n by attention of groups if keys and values are repeated for each head of a group, as
// exporters write grouped-query attention: Reshape(Expand(Unsqueeze(x))). The repeated ones are neither computed nor
// stored then. keys has the order of axes of values.
func (a *attention) replaceGrouped(n, last *ir.Node, keys permutedValue) bool {
	k, group := a.repeatInput(keys)
	v, groupV := a.repeatInput(a.v)
	q, ok := a.headsView(a.q)
	if !ok || group < 2 || groupV != group {
		return false
	}
	shape := a.shape(a.q)
	m := &multihead{
		inserter: inserter{a.Builder, last}, isTrained: a.Needs, batch: shape[0], heads: shape[1],
		kvHeads: shape[1] / group, queries: shape[2], size: shape[3],
		keys: a.shape(keys)[2], value: a.shape(a.v)[3], q: q, k: k, v: v, scale: float32(a.scale), left: -1, right: -1,
	}
	if a.mask != nil {
		mask := a.Shape(a.mask)
		m.addMask(a.mask, append(slices.Repeat([]int64{1}, 4-len(mask)), mask...)...)
	}
	// attend has two layouts of its result, with heads before or after tokens; other permutations are left alone.
	// Nodes inserted until here have no consumer, and sweep removes them.
	if last != n && !slices.Equal(permOf(last, 4), []int64{0, 2, 1, 3}) {
		return false
	}
	replaceOutput(last, 0, m.reshape(m.attend(last == n), a.Shape(last.Outputs[0])...))
	return true
}

// headsView returns an operand [batch, heads, tokens, size], or one of which heads and tokens are exchanged.
func (a *attention) headsView(o permutedValue) (headsView, bool) {
	switch {
	case len(a.Shape(o.v)) != 4:
		return headsView{}, false
	case o.perm == nil || slices.Equal(o.perm, identityPermutation(4)):
		return headsView{o.v, true}, true
	}
	return headsView{o.v, false}, slices.Equal(o.perm, []int64{0, 2, 1, 3})
}

// repeatInput returns the heads that o repeats, and how often; 0 if it repeats none.
func (a *attention) repeatInput(o permutedValue) (headsView, int64) {
	heads, ok := a.headsView(o)
	if !ok || !heads.split || !is(o.v.Producer(), "", "Reshape") {
		return headsView{}, 0
	}
	wide := o.v.Producer().Input(0)
	if !is(wide.Producer(), "", "Expand") {
		return headsView{}, 0
	}
	single := wide.Producer().Input(0)
	if !is(single.Producer(), "", "Unsqueeze", "Reshape") {
		return headsView{}, 0
	}
	x, all, each := single.Producer().Input(0), a.Shape(o.v), a.Shape(wide)
	if s := a.Shape(x); len(s) != 4 || len(each) != 5 || each[2] < 2 || all[1] != s[1]*each[2] ||
		!slices.Equal(a.Shape(single), []int64{s[0], s[1], 1, s[2], s[3]}) ||
		!slices.Equal(each, []int64{s[0], s[1], each[2], s[2], s[3]}) {
		return headsView{}, 0
	}
	return headsView{x, true}, each[2]
}
