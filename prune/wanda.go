package prune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
)

// Wanda zeroes the elements of smallest |weight|·‖input‖₂ in each output row of matrices, or among all of a weight, as
// in the filters of a convolution (Sun et al. 2023, A Simple and Effective Pruning Approach for Large Language Models,
// arXiv:2306.11695). The norms of inputs are those that calibration samples have in the model whose earlier layers are
// pruned already. Existing zeros are the smallest elements; of equal products the lower index is pruned first.
type Wanda struct {
	pass.Selection
	pass.Calibration
	_ pass.SharedOptions[sparsity]

	// Amount is the fraction of the elements of each weight that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts
	// Pattern keeps N of every M elements along the reduction axis, in place of an amount.
	Pattern Pattern
	// Allocate is the distribution of the amount over weights: uniform, owl or sensitivity; empty for uniform.
	Allocate string
	// Compare is the elements that are compared with each other: row, layer, magnitude or auto; empty for auto. The
	// paper's is row.
	Compare string `flag:"compare" default:"auto" enum:"auto,row,layer,magnitude" usage:"'comparison' of elements: row (those of an output row), layer (all of a weight), magnitude (all of a weight, without input norms), or auto (the one of highest output SQNR)"`
	// NoSequential observes the activations of the source model, so that layers do not depend on each other.
	NoSequential bool
}

var wandaMethod = &pass.Method{
	Name:       "wanda",
	Command:    "prune",
	Doc:        "zero the elements of smallest |weight| times the norm of its input, by calibration samples",
	Stage:      pass.Prune,
	Calibrates: true,
	New:        func() pass.Options { return &Wanda{} },
}

// Method describes the method.
func (Wanda) Method() *pass.Method { return wandaMethod }

// Check reports amounts that are not fractions.
func (o Wanda) Check() error { return o.sparsity().check() }

func (o Wanda) sparsity() *sparsity { return sparsityOf(o) }

// Run implements pass.Options.
func (o Wanda) Run(ctx context.Context, step *pass.Step) error {
	amounts := o.sparsity()
	s := &samplePass{step: step, sparsity: amounts, sequential: !o.NoSequential,
		data: calibrate.NewData(o.Calibration, false), note: amounts.pruneNote}
	s.compare, s.paper, s.candidates, s.repeat = &o.Compare, byRow, o.comparisons, func() { step.Ledger.Repeat(o) }
	s.moments = func(k int) inputStatistics { return &inputNorms{squares: make([]float64, k)} }
	s.prune = func(l *layer, x []float32, ms []inputStatistics) error {
		scores := make([]float64, l.groups*l.n*l.k)
		s.pool.For(l.groups*l.n, func(row int) {
			m := ms[row/l.n].(*inputNorms)
			if o.Compare == byMagnitude {
				m = nil
			}
			l.scores(scores[row*l.k:][:l.k], x, row, m)
		})
		amounts.eachPart(l, o.Compare != byRow, func(from, to, n int) {
			for i, pruned := range smallest(scores[from:to], int64(n)) {
				if pruned {
					row, input := (from+i)/l.k, (from+i)%l.k
					x[l.index(row/l.n, input, row%l.n)] = 0
				}
			}
		})
		return nil
	}
	return s.pruneLayers(ctx, amounts.weights(step))
}

// comparisons are those that differ for layers, first that of magnitude pruning: norms of inputs have to be of use.
func (o *Wanda) comparisons(layers []*layer) []string {
	if o.Pattern.M > 0 || !slices.ContainsFunc(layers, func(l *layer) bool { return !l.filter() }) {
		return []string{byMagnitude, byRow}
	}
	return []string{byMagnitude, byRow, byLayer}
}

// scores sets scores to |weight|·‖input‖ of one output row, or to |weight| without norms; -1 for zeros.
func (l *layer) scores(scores []float64, x []float32, row int, m *inputNorms) {
	for i := range scores {
		scores[i] = -1
		if v := x[l.index(row/l.n, i, row%l.n)]; v != 0 {
			if scores[i] = math.Abs(float64(v)); m != nil {
				scores[i] *= math.Sqrt(m.squares[i])
			}
		}
	}
}

// eachPart calls do for the parts of a weight that are pruned separately, as ranges of its elements row by row, with
// the number of elements to prune in each: the groups of a pattern, or output rows, or the whole weight, as of a
// convolution: rows of 9 inputs differ too much for one amount. The numbers add up to the amount of the weight.
func (o *sparsity) eachPart(l *layer, whole bool, do func(from, to, n int)) {
	all := l.groups * l.n * l.k
	if o.Pattern.M == 0 {
		amount, part := l.amount, l.k
		if whole || l.filter() {
			part = all
		}
		for from := 0; from < all; from += part {
			// Differences of rounded sums add up to the rounded amount of all parts.
			do(from, from+part, int(prunedCount(amount, int64(from+part))-prunedCount(amount, int64(from))))
		}
		return
	}
	for row := range l.groups * l.n {
		for from := 0; from < l.k; {
			to := o.Pattern.end(l, from)
			do(row*l.k+from, row*l.k+to, max(0, to-from-o.Pattern.N))
			from = to
		}
	}
}

// end is the end of the group of l that starts with an input. Groups are along the channels of one tap.
func (p Pattern) end(l *layer, from int) int {
	return min(from+p.M, (from/l.channels+1)*l.channels)
}

// inputNorms are the sums of squares of each input.
type inputNorms struct{ squares []float64 }

// Add adds rows of inputs.
func (s *inputNorms) Add(rows []float32) {
	for k := len(s.squares); len(rows) > 0; rows = rows[k:] {
		for i, v := range rows[:k] {
			s.squares[i] += float64(float64(v) * float64(v))
		}
	}
}

// Finite reports whether there were only finite inputs.
func (s *inputNorms) Finite() bool { return allFinite(s.squares) }

// sparsity is the group of options about the elements that are pruned, a fraction of each weight or a pattern, and
// about the model whose activations are observed.
type sparsity struct {
	// Amount is the fraction of the elements of each weight that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Pattern keeps N of every M elements along the reduction axis, in place of an amount.
	Pattern Pattern `flag:"pattern" usage:"'n:m' to keep n of every m elements along the reduction axis, in place of --amount"`
	// Allocate is the distribution of the amount over weights: uniform, owl or sensitivity; empty for uniform.
	Allocate string `flag:"allocate" default:"uniform" enum:"uniform,owl,sensitivity" usage:"'distribution' of --amount over weights: uniform, owl (smaller fractions of weights with more outliers of |weight| times input norm), or sensitivity (smaller ones where pruning this weight alone changes the outputs more)"`
	// NoSequential observes the activations of the source model, so that layers do not depend on each other.
	NoSequential bool `flag:"sequential,not" usage:"observe the inputs of a layer in the model whose earlier layers are pruned; =false: in the source, so that workers of a plan divide the layers"`
}

func sparsityOf(o pass.Options) *sparsity {
	group := pass.SharedOf[sparsity](o)
	return &group
}

func (o *sparsity) fraction() fraction { return fraction{o.Amount, o.Amounts} }

func (o *sparsity) check() error {
	if o.Pattern.M > 0 && len(o.Amounts) > 0 {
		return pass.OptionErrorf("--pattern and --amounts exclude each other")
	}
	if o.Allocate != "" && o.Allocate != uniform && (o.Pattern.M > 0 || len(o.Amounts) > 0) {
		return pass.OptionErrorf("--allocate %s is a distribution of --amount; it excludes --pattern and --amounts",
			o.Allocate)
	}
	return o.fraction().check()
}

// weights are the weights that are pruned; the others have a row in the ledger.
func (o *sparsity) weights(s *pass.Step) (ws []*weight) {
	for _, w := range weights(s, false) {
		reason := pass.Reason{}
		if o.Pattern.M == 0 && o.fraction().count(w.v, w.consumers, w.before.Elems()) == 0 {
			reason = roundsToZero
		} else if o.Pattern.M > 0 {
			_, reason = o.Pattern.axis(w)
		}
		if !reason.None() {
			w.skip(s, reason)
			continue
		}
		ws = append(ws, w)
	}
	return ws
}

// pruneNote is the reason of a weight that is pruned.
func (o *sparsity) pruneNote(l *layer) pass.Reason {
	k, along := int64(0), ""
	o.eachPart(l, true, func(_, _, n int) { k += int64(n) })
	if o.Pattern.M > 0 {
		along = fmt.Sprintf(", %s along the axis of %d", &o.Pattern, l.channels)
	}
	return pass.Reason{Code: pass.Pruned, Detail: fmt.Sprintf("%d of %d elements%s", k, l.before.Elems(), along)}
}
