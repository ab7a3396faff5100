package prune

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// Channel removes channels (structured pruning), which makes tensors smaller and products faster: the filters of least
// importance, the biases and normalizations of their channels, and the columns of the layers that consume them. Layers
// whose channels are added to one another lose the same channels, by the sum of their importances. Of equal ones the
// lower channel is pruned first. One channel of each axis is always kept. The importance is the L1 norm of the filters
// (Li et al., Pruning Filters for Efficient ConvNets, ICLR 2017), or the change of outputs on samples (Molchanov et
// al., Importance Estimation for Neural Network Pruning, CVPR 2019).
//
// A second run prunes the same fraction of the remaining channels.
type Channel struct {
	pass.Selection
	_ pass.SharedOptions[channelImportance]
	pass.Calibration

	// Importance is magnitude, taylor, or, of heads and neurons, wanda; empty for magnitude.
	Importance string
	// Amount is the fraction of the channels of each group that is pruned, above 0 up to 1, or None; 0 is the default.
	Amount Amount `flag:"amount" default:"0.5" usage:"'fraction' of the elements that is pruned, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Round is the number of which the channels that are kept are a multiple; 0 for 1.
	Round int `flag:"round" default:"1" usage:"keep a multiple of this 'number' of channels"`
	// TargetMACs is the fraction of the multiply-accumulates of products with weights that is left, above 0 up to 1; 0
	// for an amount of each group.
	TargetMACs float64 `flag:"target-macs" usage:"'fraction' of the multiply-accumulates to keep, in place of --amount: channels of all layers are compared by importance for each multiply-accumulate that they save"`

	removes channelKind
	// classes of channels before the first of several steps, by the first source of their group; nil for one step
	widths map[*ir.Value]int
	before *float64 // multiply-accumulates before the first of several steps, 0 until it; nil for one step
}

var channelMethod = &pass.Method{
	Name:    "channel",
	Command: "prune",
	Doc:     "remove whole channels of least importance: filters, neurons and what reads them",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Channel{} },
}

// Method describes the method.
func (Channel) Method() *pass.Method { return channelMethod }

func (o Channel) fraction() fraction { return fraction{o.Amount, o.Amounts} }

// Check reports options that are out of range.
func (o Channel) Check() error {
	if o.Round < 1 {
		return pass.OptionErrorf("--round %d is not a number of 1 or more", o.Round)
	}
	if err := checkImportance(o.Importance, o.removes); err != nil {
		return err
	}
	if o.TargetMACs != 0 && len(o.Amounts) > 0 {
		return pass.OptionErrorf("--target-macs and --amounts exclude each other")
	}
	if !isFraction(o.TargetMACs) {
		return pass.OptionErrorf("--target-macs %v is not a fraction from 0 to 1: 0.4 keeps 40 %%", o.TargetMACs)
	}
	return o.fraction().check()
}

// Run implements pass.Options.
func (o Channel) Run(ctx context.Context, s *pass.Step) error {
	return o.remove(ctx, s)
}

// remove removes channels of one kind.
func (o Channel) remove(ctx context.Context, s *pass.Step) error {
	shared := separate(s.Model)
	defer shared.join()
	plan, err := coupling.Find(s, func(v *ir.Value) (none pass.Reason) {
		if pass.StoredSmaller(v.Const) {
			return pass.Reason{Code: pass.StoredSparse, Detail: v.Name}
		}
		return none
	})
	if err != nil {
		return err
	}
	groups := plan.Groups()
	worth, w, err := o.importances(ctx, s, plan, groups)
	if err != nil {
		return err
	}
	pruned := map[coupling.Channel]bool{}
	none, left := pass.RoundsToZero, newLeftChannels(plan)
	if w == nil {
		o.choose(groups, worth, left, pruned)
	} else {
		none = pass.ChannelsTarget
		if err := o.chooseWithin(w, groups, worth, left, pruned); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if n := len(g.Classes) * g.Each; g.Reason.None() && !slices.ContainsFunc(g.Classes, func(u coupling.Channel) bool {
			return pruned[u]
		}) {
			g.Reason = pass.Reason{Code: none, Detail: fmt.Sprintf("%d channels", n)}
		}
		if !g.Reason.None() {
			plan.Keep(g.Classes, g.Reason)
		}
	}
	// Before Remove: the numbers of heads and neurons so far are read from the shapes.
	values, err := o.configValues(s.Model, plan, groups, pruned)
	if err != nil {
		return err
	}
	s.Ledger.ConfigChanged(values)
	for _, k := range plan.Remove(pruned) {
		remove(s, k, shared.copies[k.Value])
	}
	for _, r := range plan.Skipped {
		if !shared.copies[r.Value] {
			s.Ledger.Skip(r.Value, pass.Consumers(r.Value), r.Reason)
		}
	}
	return nil
}

// choose marks the classes that are pruned: the amount of each group, of those that can go.
func (o Channel) choose(groups []*coupling.Group, worth map[coupling.Channel]float64, left *leftChannels,
	pruned map[coupling.Channel]bool) {
	for _, g := range groups {
		if !g.Reason.None() {
			continue
		}
		amount := 1.0
		for _, s := range g.Sources {
			amount = min(amount, o.fraction().amountOf(s.Value, pass.Consumers(s.Value)))
		}
		k := len(g.Classes) - min(len(g.Classes), o.stay(o.width(g), g.Each, amount))
		var gone []coupling.Channel
		for _, u := range byWorth(g.Classes, worth) {
			if len(gone) < k && left.lose(u) {
				gone = append(gone, u)
			}
		}
		// Some classes stay as the last ones of an axis, so that what is left may be no multiple of --round: the most
		// important of the others return.
		for len(gone) > 0 && len(gone) < k && (len(g.Classes)-len(gone))*g.Each%o.Round != 0 {
			left.restore(gone[len(gone)-1:])
			gone = gone[:len(gone)-1]
		}
		for _, u := range gone {
			pruned[u] = true
		}
	}
}

// byWorth are classes in the order in which they are removed.
func byWorth(classes []coupling.Channel, worth map[coupling.Channel]float64) []coupling.Channel {
	return slices.SortedStableFunc(slices.Values(classes), func(a, b coupling.Channel) int {
		return cmp.Compare(worth[a], worth[b])
	})
}

// width is the number of classes of g of which a fraction is pruned: that before the first step.
func (o Channel) width(g *coupling.Group) int {
	n, source := len(g.Classes), g.Sources[0].Value
	if o.widths == nil {
		return n
	}
	if o.widths[source] == 0 {
		o.widths[source] = n
	}
	return o.widths[source]
}

// stay is the number of n classes of channels to keep: one or more, for a multiple of --round channels.
func (o Channel) stay(n, each int, a float64) int {
	left := max(n-int(prunedCount(a, int64(n))), 1)
	for left < n && left*each%o.Round != 0 {
		left++
	}
	return left
}

// remove removes channels from a constant and adds its row, which copies of shared vectors have none of.
func remove(s *pass.Step, k coupling.Kept, copied bool) {
	v, consumers := k.Value, pass.Consumers(k.Value)
	if !k.Pruned {
		if copied {
			return
		}
		if k.Reason.None() {
			k.Reason = pass.Reason{Code: pass.ChannelsLarger}
		}
		s.Ledger.Skip(v, consumers, k.Reason)
		return
	}
	whole, before, detail := v.Const, k.Before, k.String()
	after := ir.IndexSelect(s.Method, whole, k.Places)
	v.SetConst(after)
	v.Type = typeOf(after)
	if !pass.IsWeight(before) || copied {
		return
	}
	s.Ledger.Changed(v, before, consumers, pass.Row{
		Form:  pass.Smaller,
		Notes: pass.Notes(pass.Reason{Code: pass.Pruned, Detail: detail}),
		After: []pass.Part{{Role: pass.Payload, Value: v, Tensor: after}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor {
			return inShape(ir.IndexSelect(s.Method, parts[0], scatterBack(whole.Shape, k.Places)), before.Shape)
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

// scatterBack are the places that undo ir.IndexSelect, with zeros for the other entries.
func scatterBack(shape []int64, places [][]int64) [][]int64 {
	back := make([][]int64, len(places))
	for k, ps := range places {
		if ps == nil {
			continue
		}
		back[k] = make([]int64, shape[k])
		for i := range back[k] {
			back[k][i] = -1
		}
		for i, from := range ps {
			back[k][from] = int64(i)
		}
	}
	return back
}
