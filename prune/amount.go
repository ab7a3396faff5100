package prune

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An amount is the share of elements that fall, from 0 to 1. It is never a count: 1 means
// all, not one.
type amount float64

// String is the amount as Set takes it.
func (a *amount) String() string { return strconv.FormatFloat(float64(*a), 'g', -1, 64) }

// Set parses a number from 0 to 1.
func (a *amount) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("%q is no share from 0 to 1: 0.4 prunes 40 %%", s)
	}
	*a = amount(f)
	return nil
}

// of is how many of n elements fall: rounded half to even, as torch.nn.utils.prune does.
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

// Set adds comma-separated pairs pattern=amount.
func (as *Amounts) Set(s string) error {
	for pair := range strings.SplitSeq(s, ",") {
		i := strings.LastIndexByte(pair, '=')
		if i < 1 {
			return fmt.Errorf("%q is no pair pattern=amount", pair)
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
	Amounts Amounts  `flag:"amounts" usage:"other fractions by glob over tensor and node names, as 'pattern=fraction',...; the last match counts"`
}

// Check reports an amount that is not a fraction.
func (f Fraction) Check() error {
	if !(*f.Amount >= 0 && *f.Amount <= 1) {
		return pass.OptionErrorf("--amount %v is not a fraction from 0 to 1: 0.4 prunes 40 %%", *f.Amount)
	}
	return nil
}

// of is the amount in force for v, whose consumers are the given nodes.
func (f Fraction) of(v *ir.Value, consumers []*ir.Node) amount {
	for i := len(f.Amounts) - 1; i >= 0; i-- {
		one := pass.Selection{Only: pass.Globs{f.Amounts[i].glob}}
		if one.Excludes(v, consumers) == "" {
			return f.Amounts[i].amount
		}
	}
	return amount(*f.Amount)
}

// A share is the two options that say how much of a weight falls.
type share struct {
	all   amount
	named Amounts
}

func bindShare(fs *flag.FlagSet) *share {
	s := &share{all: 0.5}
	fs.Var(&s.all, "amount", "`fraction` of the elements that is pruned, from 0 to 1")
	fs.Var(&s.named, "amounts", "other fractions by glob over tensor and node names, as `pattern=fraction`,...; the last match counts")
	return s
}

func (s *share) of(v *ir.Value, readers []*ir.Node) amount {
	return Fraction{Amount: new(float64(s.all)), Amounts: s.named}.of(v, readers)
}
