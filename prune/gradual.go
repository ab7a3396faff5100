package prune

import (
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Gradual is a method that can prune in several steps.
type Gradual interface {
	pass.Options
	// InSteps returns a function for the steps in their order. Its result prunes a model that the steps before have
	// pruned up to a fraction of the amounts of the options, from 0 to 1; nil if the step prunes nothing.
	InSteps() func(done float64) pass.Options
}

// inSteps returns the steps of options that change with the fraction of the amounts.
func inSteps[O pass.Options](o O, change func(o *O, done float64)) func(done float64) pass.Options {
	return func(done float64) pass.Options {
		o := o
		change(&o, done)
		return o
	}
}

// InSteps implements Gradual.
func (o L1) InSteps() func(done float64) pass.Options {
	return inSteps(o, func(o *L1, done float64) { o.Amount, o.Amounts = o.fraction().times(done) })
}

// InSteps implements Gradual.
func (o L1Global) InSteps() func(done float64) pass.Options {
	return inSteps(o, func(o *L1Global, done float64) { o.Amount *= done })
}

// InSteps implements Gradual.
func (o L2) InSteps() func(done float64) pass.Options {
	return inSteps(o, func(o *L2, done float64) { o.Amount, o.Amounts = o.fraction().times(done) })
}

// InSteps implements Gradual. The draw of a smaller fraction is a part of that of a larger one.
func (o Random) InSteps() func(done float64) pass.Options {
	return inSteps(o, func(o *Random, done float64) { o.Amount, o.Amounts = o.fraction().times(done) })
}

// InSteps implements Gradual: n decreases from m to that of the pattern.
func (o NM) InSteps() func(done float64) pass.Options {
	return func(done float64) pass.Options {
		o := o
		m := o.Pattern.M
		if o.Pattern.N = m - int(math.Round(done*float64(m-o.Pattern.N))); o.Pattern.N == m {
			return nil
		}
		return o
	}
}

// InSteps implements Gradual. Amounts are fractions of the channels before the first step, and the target one of the
// multiply-accumulates.
func (o Channel) InSteps() func(done float64) pass.Options {
	o.widths, o.before = map[*ir.Value]int{}, new(float64)
	return inSteps(o, func(o *Channel, done float64) {
		o.Amount, o.Amounts = o.fraction().times(done)
		if o.TargetMACs != 0 {
			o.TargetMACs = 1 - done*(1-o.TargetMACs)
		}
	})
}

// times are the amounts times a factor above 0.
func (f fraction) times(factor float64) (Amount, Amounts) {
	as := slices.Clone(f.amounts)
	for i := range as {
		as[i].Amount *= factor
	}
	if f.amount == None {
		return None, as
	}
	return f.amount * Amount(factor), as
}
