package prune

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An amount is the fraction of elements that is pruned, from 0 to 1. It is never a number of elements: 1 means all, not one.
type amount float64

// String is the amount as Set takes it.
func (a *amount) String() string { return strconv.FormatFloat(float64(*a), 'g', -1, 64) }

// Set parses a number from 0 to 1.
func (a *amount) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("%q is not a fraction from 0 to 1: 0.4 prunes 40 %%", s)
	}
	*a = amount(f)
	return nil
}

// of is the number of elements of n that is pruned: rounded half to even, as torch.nn.utils.prune does.
func (a amount) of(n int64) int64 { return int64(math.RoundToEven(float64(a) * float64(n))) }

// Amounts are fractions by pattern. Of several patterns that match, the last one counts, so that exceptions follow the rule.
type Amounts []patternAmount

type patternAmount struct {
	glob   string
	amount amount
}

// String joins the pairs as Set takes them.
func (as *Amounts) String() string {
	parts := make([]string, len(*as))
	for i, p := range *as {
		parts[i] = p.glob + "=" + p.amount.String()
	}
	return strings.Join(parts, ",")
}

// Patterns are the patterns, each of which must match something.
func (as *Amounts) Patterns() []string {
	var list []string
	for _, a := range *as {
		list = append(list, a.glob)
	}
	return list
}

// Set adds comma-separated pairs pattern=fraction.
func (as *Amounts) Set(s string) error {
	for pair := range strings.SplitSeq(s, ",") {
		i := strings.LastIndexByte(pair, '=')
		if i < 1 {
			return fmt.Errorf("%q is not a pair pattern=fraction", pair)
		}
		p := patternAmount{glob: pair[:i]}
		if err := new(pass.Globs).Set(p.glob); err != nil {
			return err
		}
		if err := p.amount.Set(pair[i+1:]); err != nil {
			return err
		}
		*as = append(*as, p)
	}
	return nil
}

// Fraction is the options for the fraction of a weight that is pruned.
type Fraction struct {
	Amount  *float64 `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	Amounts Amounts  `flag:"amounts" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
}

// Check reports an amount that is not a fraction.
func (f Fraction) Check() error { return checkAmount(*f.Amount) }

func checkAmount(a float64) error {
	if !(a >= 0 && a <= 1) {
		return pass.OptionErrorf("--amount %v is not a fraction from 0 to 1: 0.4 prunes 40 %%", a)
	}
	return nil
}

// of is the amount in force for v, whose consumers are the given nodes.
func (f Fraction) of(v *ir.Value, consumers []*ir.Node) amount {
	for i := len(f.Amounts) - 1; i >= 0; i-- {
		one := pass.Selection{Only: pass.Globs{f.Amounts[i].glob}}
		if !one.Excludes(v, consumers) {
			return f.Amounts[i].amount
		}
	}
	return amount(*f.Amount)
}
