package distill

import (
	"cmp"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An importance is the scores and masks of the weights that movement pruning prunes, by their names. Weights keep their
// values under the mask, so that their scores may rise again.
type importance map[string]*maskedWeight

// A maskedWeight is the state of one weight.
type maskedWeight struct {
	scores *ir.Array // sum of w·∂L/∂w over all steps: the higher, the less important
	mask   *ir.Array // 1 for weights that are kept, 0 for pruned ones
}

// newImportance returns zero scores and full masks for these weights.
func newImportance(vs []*ir.Value) importance {
	all := importance{}
	for _, v := range vs {
		w := &maskedWeight{scores: withoutData(v.Const.Spec), mask: withoutData(v.Const.Spec)}
		zero(w.scores, w.mask)
		mask := ir.View[float32](w.mask)
		for i := range mask {
			mask[i] = 1
		}
		all[v.Name] = w
	}
	return all
}

// attach gives parameters their scores and masks.
func (all importance) attach(ps *parameters) {
	for name, w := range all {
		if p := ps.byName[name]; p != nil {
			p.scores, p.mask = w.scores, w.mask
		}
	}
}

// insertMasks multiplies weights by their masks in a graph, and adds the arrays of the masks to feeds. It returns the
// masked weights by the names of parameters.
func insertMasks(tape *grad.Tape, params *parameters, feeds map[string]*ir.Array) map[string]*ir.Value {
	masked := map[string]*ir.Value{}
	for _, param := range tape.Params {
		p := params.byName[param.Name]
		if p == nil || p.mask == nil {
			continue
		}
		v := param.Value
		// Before Mul, which consumes the weight itself.
		uses := slices.Clone(v.Uses())
		mask := tape.Input(v.Name+".mask", ir.Float, p.mask.Shape...)
		feeds[mask.Name] = p.mask
		n := tape.New(ir.OpID{Domain: op.Newest, Type: "Mul"}, []*ir.Value{v, mask})
		tape.Graph().InsertBefore(tape.Graph().First(), n)
		for _, u := range uses {
			if u.Node != nil {
				u.Node.SetInput(u.Index, n.Outputs[0])
			}
		}
		masked[p.name] = n.Outputs[0]
	}
	return masked
}

// nameMaskedGradients records the gradients of masked weights, once the graph has them.
func (st *step) nameMaskedGradients() {
	st.grads = map[string]string{}
	for name, v := range st.maskedWeights {
		if g := st.tape.Grad(v); g != nil {
			st.grads[name] = g.Name
		}
	}
}

// addScores adds the nodes that add w·∂L/∂w of a step to the scores, before the weights change. The gradient is that of
// the masked weight, so that pruned weights have scores, too (Sanh, Wolf and Rush, Movement Pruning, 2020,
// arXiv:2005.07683, section 4).
func (b *graphBuilder) addScores(st *step) {
	for _, w := range st.tape.Params {
		p, name := b.params.byName[w.Name], st.grads[w.Name]
		if name == "" {
			continue
		}
		scores := st.tape.Input(w.Name+".scores", ir.Float, p.scores.Shape...)
		st.feeds[scores.Name] = p.scores
		st.tape.Own("AccumulateGrad", 1, []*ir.Value{scores, st.tape.Op("Mul", []*ir.Value{w.Value, st.tape.Value(name)})})
	}
}

// copyScores returns a function that restores the scores.
func (ps *parameters) copyScores() (restore func()) {
	var saved [][]byte
	for _, p := range ps.weights {
		if p.scores != nil {
			saved = append(saved, slices.Clone(p.scores.Data))
		}
	}
	return func() {
		for _, p := range ps.weights {
			if p.scores != nil {
				copy(p.scores.Data, saved[0])
				saved = saved[1:]
			}
		}
	}
}

// prune sets the mask of the n least important elements of a weight to 0, and that of the others to 1. Zeros are the
// least important ones; of equal scores the first are pruned first.
func (w *maskedWeight) prune(values []float32, n int) {
	scores, mask := slices.Clone(ir.View[float32](w.scores)), ir.View[float32](w.mask)
	for i, x := range values {
		// Their own scores are about 0, so that they would be kept in place of weights that move towards zero.
		if x == 0 {
			scores[i] = float32(math.Inf(1))
		}
	}
	sorted := slices.SortedFunc(slices.Values(scores), func(a, b float32) int { return cmp.Compare(b, a) })
	limit, ties := float32(math.Inf(-1)), 0
	if n < len(sorted) { // limit is the highest score that is kept
		limit = sorted[n]
		ties = n - slices.Index(sorted, limit)
	}
	for i, s := range scores {
		mask[i] = 1
		switch {
		case s > limit:
			mask[i] = 0
		case s == limit && ties > 0:
			mask[i] = 0
			ties--
		}
	}
}
