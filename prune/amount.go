package prune

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An Amount is the fraction that is pruned of each weight, above 0 up to 1, or None. The zero value is the default of
// the method.
type Amount float64

// None prunes no weight, except as Amounts specify. Its text is 0.
const None Amount = -1

// String is the fraction as Set parses it.
func (a *Amount) String() string { return text(a.fraction()) }

// Set parses a fraction from 0 to 1.
func (a *Amount) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !isFraction(f) {
		return notFraction(s)
	}
	if *a = Amount(f); f == 0 {
		*a = None
	}
	return nil
}

func (a Amount) fraction() float64 {
	if a == None {
		return 0
	}
	return float64(a)
}

func text(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Amounts are fractions by pattern. Of several patterns that match, the last one counts, so that exceptions follow the
// rule.
type Amounts []PatternAmount

// A PatternAmount is the fraction that is pruned of the weights that a pattern selects, from 0 to 1.
type PatternAmount struct {
	Pattern string // glob over the names of tensors, nodes and modules, or op:Type
	Amount  float64
}

// String joins the pairs as Set takes them.
func (as *Amounts) String() string {
	parts := make([]string, len(*as))
	for i, a := range *as {
		parts[i] = a.Pattern + "=" + text(a.Amount)
	}
	return strings.Join(parts, ",")
}

// Patterns are the patterns, each of which must match something.
func (as *Amounts) Patterns() []string {
	var list []string
	for _, a := range *as {
		list = append(list, a.Pattern)
	}
	return list
}

// Set adds comma-separated pairs pattern=fraction.
func (as *Amounts) Set(s string) error {
	for pair := range strings.SplitSeq(s, ",") {
		// The last one: names of tensors may have the character.
		i := strings.LastIndexByte(pair, '=')
		if i < 1 {
			return fmt.Errorf("%q is not a pair pattern=fraction", pair)
		}
		f, err := strconv.ParseFloat(pair[i+1:], 64)
		if err != nil {
			return notFraction(pair[i+1:])
		}
		a := PatternAmount{pair[:i], f}
		if err := a.check(); err != nil {
			return err
		}
		*as = append(*as, a)
	}
	return nil
}

func (a PatternAmount) check() error {
	if !isFraction(a.Amount) {
		return notFraction(text(a.Amount))
	}
	return new(pass.Globs).Set(a.Pattern)
}

func isFraction(f float64) bool { return f >= 0 && f <= 1 }

func notFraction(text string) error {
	return fmt.Errorf("%q is not a fraction from 0 to 1: 0.4 prunes 40 %%", text)
}

// checkAmount reports an amount that is not a fraction.
func checkAmount(a float64) error {
	if !isFraction(a) {
		return pass.OptionErrorf("--amount %v is not a fraction from 0 to 1: 0.4 prunes 40 %%", a)
	}
	return nil
}

// A fraction is the amount of all weights, and of those that patterns select.
type fraction struct {
	amount  Amount
	amounts Amounts
}

func (f fraction) check() error {
	for _, a := range f.amounts {
		if err := a.check(); err != nil {
			return pass.OptionErrorf("--amounts: %w", err)
		}
	}
	return checkAmount(f.amount.fraction())
}

// count is the number of the n elements, or channels, of v that are pruned. Nodes are its consumers.
func (f fraction) count(v *ir.Value, nodes []*ir.Node, n int64) int64 {
	return prunedCount(f.amountOf(v, nodes), n)
}

// amountOf is the amount in force for v, whose consumers are the given nodes.
func (f fraction) amountOf(v *ir.Value, nodes []*ir.Node) float64 {
	for _, a := range slices.Backward(f.amounts) {
		one := pass.Selection{Only: pass.Globs{a.Pattern}}
		if !one.Excludes(v, nodes) {
			return a.Amount
		}
	}
	return f.amount.fraction()
}

// prunedCount is the number of elements of n that is pruned: rounded half to even, as torch.nn.utils.prune does. An
// amount is never a number of elements: 1 means all, not one.
func prunedCount(amount float64, n int64) int64 { return int64(math.RoundToEven(amount * float64(n))) }
