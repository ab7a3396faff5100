package prune

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// Channel removes whole channels, so that tensors become smaller and products faster: the
// filters of smallest L1 norm (Li et al., Pruning Filters for Efficient ConvNets, ICLR 2017)
// and with them all that belongs to their channels, wherever the graph takes those: biases,
// normalizations, the columns of what reads them. Layers whose channels are added up lose
// the same ones, chosen by the sum of their norms. Of equal norms the lower channel falls
// first, and one channel always stays.
//
// A second run takes its share of what is left.
type Channel struct {
	pass.Selection
	Fraction
	Round int `flag:"round" default:"1" usage:"keep a multiple of this 'number' of channels"`
}

var channelMethod = &pass.Method{
	Name:    "channel",
	Command: "prune",
	Doc:     "remove whole channels of smallest L1 norm: filters, neurons and what reads them",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Channel{} },
}

// Method describes the method.
func (Channel) Method() *pass.Method { return channelMethod }

// Check reports options that are out of range.
func (o Channel) Check() error {
	if o.Round < 1 {
		return pass.OptionErrorf("--round %d is not a number of 1 or more", o.Round)
	}
	return o.Fraction.Check()
}

// Run implements pass.Options.
func (o Channel) Run(c *pass.Context) error {
	plan, err := coupling.Find(c, func(v *ir.Value) string {
		if storedSmaller(v.Const) {
			return "stored sparse, and what is left of it would be stored dense"
		}
		return ""
	})
	if err != nil {
		return err
	}
	groups := plan.Groups()
	worth, err := worths(c, groups)
	if err != nil {
		return err
	}
	falls := map[coupling.Channel]bool{}
	for i, g := range groups {
		if why := o.choose(c, g, worth, falls); why != "" {
			plan.Keep(groups[i].Classes, why)
		}
	}
	for _, k := range plan.Remove(falls) {
		remove(c, k)
	}
	for _, r := range plan.Skipped {
		c.Skip(r.Value, pass.Readers(r.Value), r.Why)
	}
	return nil
}

// choose marks the classes of g that fall, or gives the reason why none does.
func (o Channel) choose(c *pass.Context, g *coupling.Group, worth map[*ir.Value]*norms, falls map[coupling.Channel]bool) string {
	if g.Why != "" {
		return g.Why
	}
	amount := amount(1)
	for _, s := range g.Sources {
		readers := pass.Readers(s.Value)
		if why := c.Select.Excludes(s.Value, readers); why != "" {
			return fmt.Sprintf("its channels are those of %q, which is %s", s.Value.Name, why)
		}
		if worth[s.Value].trouble != "" {
			return fmt.Sprintf("its channels are those of %q: %s", s.Value.Name, worth[s.Value].trouble)
		}
		amount = min(amount, o.Fraction.of(s.Value, readers))
	}
	n := len(g.Classes)
	k := n - o.stay(n, g.Each, amount)
	if k == 0 {
		return fmt.Sprintf("the amount comes to none of its %d channels", n*g.Each)
	}
	for i, falling := range smallest(sums(g, worth), int64(k)) {
		if falling {
			falls[g.Classes[i]] = true
		}
	}
	return ""
}

// stay is how many of n classes of channels do: at least one, and so many that the number of
// channels is a multiple as asked for.
func (o Channel) stay(n, each int, a amount) int {
	left := max(n-int(a.of(int64(n))), 1)
	for left < n && left*each%o.Round != 0 {
		left++
	}
	return left
}

// remove leaves of a constant what is kept, and adds its row.
func remove(c *pass.Context, k coupling.Kept) {
	v, readers := k.Value, pass.Readers(k.Value)
	if !k.Pruned {
		c.Skip(v, readers, cmp.Or(k.Why, "none of the channels that fall is its own"))
		return
	}
	whole, before := v.Const, k.Before
	after := pick(c.Method, whole, k.Places)
	v.SetConst(after)
	v.Type = typeOf(after)
	if !pass.IsWeight(before) {
		return
	}
	c.Changed(v, before, readers, pass.Row{
		Form:   pass.Smaller,
		Reason: k.String(),
		After:  []pass.Part{{Role: pass.Payload, Value: v, Tensor: after}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor {
			return inShape(pick(c.Method, parts[0], undone(whole.Shape, k.Places)), before.Shape)
		},
	})
}

// inShape is t's payload in another shape.
func inShape(t *ir.Tensor, shape []int64) *ir.Tensor {
	r := *t
	r.Shape = shape
	return &r
}

func typeOf(t *ir.Tensor) *ir.Type {
	dims := make([]ir.Dim, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = ir.Dim{N: d}
	}
	return &ir.Type{Elem: t.DType, Shape: slices.Clip(dims)}
}
