package prune

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// LowRank replaces a matrix by two factors, the nearest ones of their rank by singular value decomposition (Eckart &
// Young, Psychometrika 1, 1936): of MatMul and Gemm, and of a Conv as one with few filters followed by one of 1×1. It
// does so where the factors and the additional node have fewer bytes.
//
// A matrix of 768 rows takes one to two seconds of one core; time grows with the third power
// of the smaller side. One matrix is held in float64 at a time.
type LowRank struct {
	pass.Selection
	// Amount is the fraction of the elements of each weight that factors save, above 0 up to 1; 0 is the default.
	Amount float64 `flag:"amount" default:"0.5" usage:"'fraction' of each weight's elements that factors save, above 0 up to 1"`
	// Energy is the fraction of the squares of singular values that is kept, from 0 to 1, whatever rank that takes; 0
	// for an amount.
	Energy float64 `flag:"energy" usage:"'fraction' of the squares of singular values to keep, from 0 to 1, whatever rank that takes; 0: by --amount"`
	// Rank is that of all factors; 0 for an amount.
	Rank int `flag:"rank" usage:"'rank' of all factors; 0: by --amount"`
}

var lowRankMethod = &pass.Method{
	Name:    "lowrank",
	Command: "prune",
	Doc:     "replace matrices by two factors of lower rank, where that is smaller",
	Stage:   pass.Prune,
	Shrinks: true,
	New:     func() pass.Options { return &LowRank{} },
}

// Method describes the method.
func (LowRank) Method() *pass.Method { return lowRankMethod }

// Check reports options that are out of range or exclude one another.
func (o LowRank) Check() error {
	switch {
	case !(o.Energy >= 0 && o.Energy <= 1):
		return pass.OptionErrorf("--energy %v is not a fraction from 0 to 1", o.Energy)
	case o.Rank < 0:
		return pass.OptionErrorf("--rank %d is negative", o.Rank)
	case o.Rank > 0 && o.Energy > 0:
		return pass.OptionErrorf("--rank and --energy exclude one another")
	}
	return checkAmount(o.Amount)
}

// Run implements pass.Options.
func (o LowRank) Run(ctx context.Context, s *pass.Step) error {
	for _, w := range weights(s, true) {
		f, reason := factorizationOf(w)
		if reason.None() {
			var err error
			if reason, err = o.factor(ctx, s, f); err != nil {
				return err
			}
		}
		if !reason.None() {
			w.skip(s, reason)
		}
	}
	return nil
}

// factor replaces f's weight, or returns the reason why it is not replaced.
func (o LowRank) factor(ctx context.Context, step *pass.Step, f *factorization) (reason pass.Reason, err error) {
	most := f.most()
	if most < 1 {
		return pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("two factors of a %d×%d matrix at any rank",
			f.rows, f.cols)}, nil
	}
	s, err := decompose(ctx, step, f, most)
	var unfit *pass.Unfit
	if errors.As(err, &unfit) {
		return unfit.Reason, nil
	}
	if err != nil {
		return pass.Reason{}, err
	}
	r := o.choose(f, s)
	if r > most {
		return pass.Reason{Code: pass.Larger, Detail: fmt.Sprintf("rank %d of %d, two factors of a %d×%d matrix are "+
			"smaller up to rank %d", r, min(f.rows, f.cols), f.rows, f.cols, most)}, nil
	}
	kept := s.energy(r)
	a, b := s.factors(f, r)
	// Only then can an element of a factor exceed the type: others need not be computed twice.
	if s.norm() > f.w.before.DType.Largest() {
		if _, err := step.Eval.Open(ctx, a); errors.As(err, &unfit) {
			return unfit.Reason, nil
		} else if err != nil {
			return pass.Reason{}, err
		}
	}
	f.rewrite(step, a, b, s.errorBound(f, step.Method, r),
		pass.Reason{Code: pass.Factored, Detail: fmt.Sprintf("rank %d of %d, %.4g %% of the energy kept", r,
			min(f.rows, f.cols), 100*kept)})
	return pass.Reason{}, nil
}

// choose is the rank by the options.
func (o LowRank) choose(f *factorization, s *decomposition) int64 {
	all := min(f.rows, f.cols)
	if o.Rank > 0 {
		return min(int64(o.Rank), all)
	}
	if o.Energy == 0 {
		left := (1 - o.Amount) * float64(f.rows) * float64(f.cols)
		return max(int64(left)/(f.rows+f.cols), 1)
	}
	r := int64(1)
	for r < all && s.energy(r) < o.Energy {
		r++
	}
	return r
}

// most is the maximum rank at which factors and graph have fewer bytes than the weight.
func (f *factorization) most() int64 {
	size := f.w.before.DType.Bits() / 8
	budget := f.rows*f.cols*size - nodeBytes - 3*int64(len(f.w.v.Name)) - 1
	return min(budget/((f.rows+f.cols)*size), min(f.rows, f.cols))
}

// nodeBytes is the size of a second product and a second tensor in the file, without payload and names of the weight.
const nodeBytes = 200

// rewrite replaces the product with the weight by a product with each factor.
func (f *factorization) rewrite(s *pass.Step, a, b *ir.Tensor, bound *pass.Bound, note pass.Reason) {
	v, n := f.w.v, f.node
	old := n.Input(f.input)
	first, second := f.addFactors(v, a, b)
	f.kind.rewrite(f, first, second)
	v.Type = typeOf(v.Const)
	if old != v {
		old.Drop()
	}
	parts := []pass.Part{{Role: pass.Payload, Value: f.a, Tensor: f.a.Const},
		{Role: pass.Payload, Value: f.b, Tensor: f.b.Const}}
	s.Ledger.Changed(v, f.w.before, f.w.consumers, pass.Row{
		Form:    pass.Factors,
		Notes:   pass.Notes(note),
		After:   parts,
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return f.product(s.Method, parts[0], parts[1]) },
		Bound:   bound,
	})
}
