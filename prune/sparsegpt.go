package prune

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// SparseGPT prunes matrices and filters input by input, and changes the inputs that follow such that they compensate
// the output error (Frantar and Alistarh 2023, SparseGPT: Massive Language Models Can Be Accurately Pruned in One-Shot,
// arXiv:2301.00774). The elements of smallest w²/[H⁻¹]² are pruned in each block of 128 inputs, in each output row or
// in the whole weight, or in each group of a pattern; of equal ones those of lower index. The Hessian H of the inputs
// is that of calibration samples in the model whose earlier layers are pruned already.
type SparseGPT struct {
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
	// Compare is the elements that are compared with each other: block, layer, row or auto; empty for auto. The paper's
	// is block.
	Compare string `flag:"compare" default:"auto" enum:"auto,block,layer,row" usage:"'comparison' of elements: block (those of 128 inputs, with the changes by earlier ones), layer (all of a weight), row (those of an output row), or auto (the one of highest output SQNR on held-out samples)"`
	// Damp is the dampening, as a fraction of the mean diagonal of the Hessian.
	Damp *float64 `flag:"damp" default:"0.01" usage:"minimum dampening, as a 'fraction' of the mean diagonal of the Hessian; more with few samples"`
	// NoSequential observes the activations of the source model, so that layers do not depend on each other.
	NoSequential bool
}

var sparseGPTMethod = &pass.Method{
	Name:       "sparsegpt",
	Command:    "prune",
	Doc:        "zero elements and change the others to compensate the output error, by calibration samples",
	Stage:      pass.Prune,
	Calibrates: true,
	New:        func() pass.Options { return &SparseGPT{} },
}

// Method describes the method.
func (SparseGPT) Method() *pass.Method { return sparseGPTMethod }

// Check reports amounts that are not fractions, and a negative dampening.
func (o SparseGPT) Check() error {
	if d := o.damp(); !(d >= 0 && d <= math.MaxFloat32) {
		return pass.OptionErrorf("--damp %g: must not be negative", d)
	}
	return o.sparsity().check()
}

func (o SparseGPT) sparsity() *sparsity { return sparsityOf(o) }

func (o SparseGPT) damp() float64 {
	if o.Damp == nil {
		return 0
	}
	return *o.Damp
}

// Run implements pass.Options.
func (o SparseGPT) Run(ctx context.Context, step *pass.Step) error {
	amounts := o.sparsity()
	s := &samplePass{step: step, sparsity: amounts, sequential: !o.NoSequential,
		data: calibrate.NewData(o.Calibration, false), note: amounts.pruneNote, fits: true}
	s.compare, s.paper, s.candidates, s.repeat = &o.Compare, byBlock, o.comparisons, func() { step.Ledger.Repeat(o) }
	s.moments = func(k int) inputStatistics { return hessian.New(s.pool, k) }
	var factored []inputStatistics // whose factors are those of the layers with the same inputs
	var factors []*hessian.Factor
	s.prune = func(l *layer, x []float32, ms []inputStatistics) error {
		if len(factored) == 0 || factored[0] != ms[0] {
			factored, factors = nil, nil
			for _, m := range ms {
				h := m.(*hessian.Hessian)
				f, err := h.Factor(ctx, hessian.Options{Damp: max(float64(o.damp()), h.Shrinkage())})
				if err != nil {
					return err
				}
				factors = append(factors, f)
			}
			factored = ms
		}
		mask := o.mask(l, x, factors)
		for group, f := range factors {
			o.solve(s, l, x, group, f, mask)
		}
		return nil
	}
	return s.pruneLayers(ctx, amounts.weights(step))
}

// comparisons are those that differ.
func (o *SparseGPT) comparisons([]*layer) []string {
	if o.Pattern.M > 0 {
		return []string{byBlock}
	}
	return []string{byBlock, byLayer, byRow}
}

// mask marks the elements that are pruned, row by row; nil if they are chosen block by block.
func (o *SparseGPT) mask(l *layer, x []float32, factors []*hessian.Factor) []bool {
	if o.Compare == byBlock || o.Pattern.M > 0 {
		return nil
	}
	scores, mask := make([]float64, l.groups*l.n*l.k), []bool(nil)
	for at := range scores {
		row, input := at/l.k, at%l.k
		w := float64(x[l.index(row/l.n, input, row%l.n)])
		scores[at] = factors[row/l.n].Loss[l.k-1-input] * float64(w*w)
	}
	o.sparsity().eachPart(l, o.Compare == byLayer, func(from, to, n int) {
		mask = append(mask, smallest(scores[from:to], int64(n))...)
	})
	return mask
}

// blockInputs is the number of inputs among which the elements of an amount are chosen.
const blockInputs = 128

// solve prunes one group of x, the elements of l, those of mask if there is one.
func (o *SparseGPT) solve(s *samplePass, l *layer, x []float32, group int, f *hessian.Factor, mask []bool) {
	w := make([]float32, l.k*l.n)
	l.copy(x, w, group, func(x, w *float32) { *w = *x })
	tiles := make([]*tile, (l.n+hessian.Wide-1)/hessian.Wide)
	for i := range tiles {
		tiles[i] = &tile{Columns: f.Columns(w, l.n, i*hessian.Wide), layer: l, pattern: o.Pattern}
	}
	// the last group of a pattern may end after the block
	scores, first := make([]float64, 0, (blockInputs+o.Pattern.M)*l.n), int64(group*l.k*l.n)
	for from := 0; from < l.k; {
		to := o.blockEnd(l, from)
		scores = scores[:(to-from)*l.n]
		s.pool.For(len(tiles), func(i int) { tiles[i].load(from, to, scores) })
		pruned := func(i, j int) bool { return mask[(group*l.n+j)*l.k+i] }
		if mask == nil && o.Pattern.M == 0 {
			amount := l.amount
			// Differences of rounded sums: all blocks together lose exactly the amount of the weight.
			n := prunedCount(amount, first+int64(to*l.n)) - prunedCount(amount, first+int64(from*l.n))
			block := smallest(scores, n)
			pruned = func(i, j int) bool { return block[(i-from)*l.n+j] }
		}
		s.pool.For(len(tiles), func(i int) { tiles[i].solve(from, to, pruned) })
		from = to
	}
	l.copy(x, w, group, func(x, w *float32) { *x = *w })
}

// copy calls do for each element of a group in x, the elements of l, and in w, K×N.
func (l *layer) copy(x, w []float32, group int, do func(x, w *float32)) {
	for i := range l.k {
		for j := range l.n {
			do(&x[l.index(group, i, j)], &w[i*l.n+j])
		}
	}
}

// blockEnd is the end of the block of inputs that starts with one: groups of a pattern are whole.
func (o *SparseGPT) blockEnd(l *layer, from int) int {
	to := min(from+blockInputs, l.k)
	if o.Pattern.M == 0 {
		return to
	}
	end := from
	for end < to {
		end = o.Pattern.end(l, end)
	}
	return end
}

// A tile is columns of a matrix that are pruned together. Input i is at position K-1-i of the factor.
type tile struct {
	*hessian.Columns
	layer   *layer
	pattern Pattern
	u       []float32 // the best values of a block, rows of Wide, by position
}

// load computes the best values of the inputs [from, to) and their scores, the output errors if they are pruned.
func (t *tile) load(from, to int, scores []float64) {
	if need := (to - from) * hessian.Wide; len(t.u) < need {
		t.u = make([]float32, need)
	}
	t.Load(t.u, t.K-to, t.K-from)
	for i := range to - from {
		t.score(t.row(from+i, to), from+i, scores[i*t.N+t.First:][:t.Cols])
	}
}

// row is the best values of an input in the block of inputs up to to.
func (t *tile) row(i, to int) []float32 { return t.u[(to-1-i)*hessian.Wide:][:hessian.Wide] }

func (t *tile) score(u []float32, i int, scores []float64) {
	loss := t.Loss[t.K-1-i]
	for j := range scores {
		scores[j] = loss * float64(float64(u[j])*float64(u[j]))
	}
}

// solve replaces the inputs [from, to): the pruned ones by 0 and the others by their best values. With a pattern, that
// chooses.
func (t *tile) solve(from, to int, pruned func(input, output int) bool) {
	for i := from; i < to; {
		end := min(i+hessian.Lazy, to)
		if t.pattern.M > 0 {
			end = t.pattern.end(t.layer, i)
		}
		// The errors of the block's inputs before this part.
		t.FeedBack(t.u[(to-end)*hessian.Wide:], t.K-end, end-i, t.K-i, t.K-from)
		var chosen [][]bool // by column
		if t.pattern.M > 0 {
			chosen = t.choose(i, end, to)
		}
		for r := i; r < end; r++ {
			t.FeedBackRow(t.row(r, to), t.K-1-r, t.K-i)
			t.replaceInput(r, t.row(r, to), func(j int) bool {
				if chosen != nil {
					return chosen[j][r-i]
				}
				return pruned(r, t.First+j)
			})
		}
		i = end
	}
}

// choose returns the elements that the pattern prunes of a group of inputs, by column.
func (t *tile) choose(from, end, to int) [][]bool {
	scores, chosen := make([]float64, (end-from)*t.Cols), make([][]bool, t.Cols)
	for r := from; r < end; r++ {
		t.score(t.row(r, to), r, scores[(r-from)*t.Cols:][:t.Cols])
	}
	column := make([]float64, end-from)
	for j := range chosen {
		for r := range column {
			column[r] = scores[r*t.Cols+j]
		}
		chosen[j] = smallest(column, int64(max(0, end-from-t.pattern.N)))
	}
	return chosen
}

// replaceInput replaces input r.
func (t *tile) replaceInput(r int, u []float32, pruned func(j int) bool) {
	w, errors := t.Row(t.K-1-r), t.Errors[(t.K-1-r)*hessian.Wide:]
	stored := append([]float32(nil), u[:t.Cols]...)
	// Before the error is taken, so that the following inputs compensate rounding, too.
	roundElements(stored, t.layer.before.DType)
	for j, v := range w {
		q := float32(0)
		if !pruned(j) {
			q = stored[j]
		}
		w[j], errors[j] = q, v-q
	}
}

// roundElements rounds x to elements of type dt.
func roundElements(x []float32, dt ir.DType) {
	switch dt {
	case ir.Float16:
		half := make([]uint16, len(x))
		kernel.F16FromF32(half, x)
		kernel.F32FromF16(x, half)
	case ir.BFloat16:
		half := make([]uint16, len(x))
		kernel.BF16FromF32(half, x)
		kernel.F32FromBF16(x, half)
	}
}
