package prune

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"

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
var Channel = &pass.Method{
	Name:    "channel",
	Command: "prune",
	Doc:     "remove whole channels of smallest L1 norm: filters, neurons and what reads them",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		m := &channel{share: share{all: 0.5}, round: 1}
		fs.Var(&m.share.all, "amount", "`share` of the channels of each group of layers that fall, from 0 to 1")
		fs.Var(&m.share.named, "amounts", "other shares by glob over tensor and node names, as `pattern=share`,...; the last match counts")
		fs.Var(&m.round, "round", "leave a multiple of so many `channels`")
		return m.run
	},
}

type channel struct {
	share share
	round count
}

// A count is a positive number.
type count int

// String is the number as Set takes it.
func (n *count) String() string { return strconv.Itoa(int(*n)) }

// Set parses a number of 1 or more.
func (n *count) Set(s string) error {
	i, err := strconv.Atoi(s)
	if err != nil || i < 1 {
		return fmt.Errorf("%q is no number of 1 or more", s)
	}
	*n = count(i)
	return nil
}

func (m *channel) run(c *pass.Context) error {
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
	falls := map[coupling.Unit]bool{}
	for i, g := range groups {
		if why := m.choose(c, g, worth, falls); why != "" {
			plan.Keep(groups[i].Classes, why)
		}
	}
	for _, k := range plan.Cut(falls) {
		remove(c, k)
	}
	for _, r := range plan.Refused {
		c.Skip(r.Value, pass.Readers(r.Value), r.Why)
	}
	return nil
}

// choose marks the classes of g that fall, or gives the reason why none does.
func (m *channel) choose(c *pass.Context, g *coupling.Group, worth map[*ir.Value]*norms, falls map[coupling.Unit]bool) string {
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
		amount = min(amount, m.share.of(s.Value, readers))
	}
	n := len(g.Classes)
	k := n - m.stay(n, g.Each, amount)
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
func (m *channel) stay(n, each int, a amount) int {
	left := max(n-int(a.of(int64(n))), 1)
	for left < n && left*each%int(m.round) != 0 {
		left++
	}
	return left
}

// remove leaves of a constant what is kept, and adds its row.
func remove(c *pass.Context, k coupling.Kept) {
	v, readers := k.Value, pass.Readers(k.Value)
	if !k.Falls {
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
