package prune

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// norms are the L1 norms of a constant's filters, in float64, added in the order of the
// payload.
type norms struct {
	axis   span
	sums   []float64
	finite bool // NaN and infinities cannot be ranked
}

// importances computes the norms of the filters that may be pruned: each constant once, in parallel, by one worker so that
// its sums have one order.
func importances(ctx context.Context, step *pass.Step, groups []*coupling.Group) (map[*ir.Value]*norms, error) {
	worth := map[*ir.Value]*norms{}
	var vs []*ir.Value
	for _, g := range groups {
		for _, s := range g.Sources {
			if g.Reason.None() && worth[s.Value] == nil {
				worth[s.Value] = &norms{axis: span{product(s.Shape[:s.Axis]), s.Shape[s.Axis], product(s.Shape[s.Axis+1:])}}
				vs = append(vs, s.Value)
			}
		}
	}
	s := &buffers{}
	return worth, pass.Parallel(ctx, step.Env.Workers, len(vs), func(ctx context.Context, i int) error {
		return worth[vs[i]].measure(ctx, step, s, vs[i].Const)
	})
}

func (n *norms) measure(ctx context.Context, step *pass.Step, s *buffers, t *ir.Tensor) error {
	ch := &channels{axis: n.axis, batch: t.Elems()}
	n.sums = make([]float64, n.axis.n)
	p, err := newRanking(ctx, step, s, t)
	if err != nil {
		return err
	}
	err = p.blocks(ctx, 0, p.total(), func(k keys, at int64) error {
		switch k := k.(type) {
		case *narrowKeys:
			addMagnitudes(ch, k.x, at, n.sums)
		case *wideKeys:
			addMagnitudes(ch, k.x, at, n.sums)
		}
		return nil
	})
	n.finite = p.isFinite()
	return err
}

func addMagnitudes[T float32 | float64](ch *channels, x []T, first int64, sums []float64) {
	ch.runs(first, int64(len(x)), func(channel, step, from, to int64) {
		for i, v := range x[from:to] {
			sums[channel+step*int64(i)] += math.Abs(float64(v))
		}
	})
}

// sums are the importances of g's classes: the norms of all filters of a class.
func sums(g *coupling.Group, worth map[*ir.Value]*norms) []float64 {
	at := map[coupling.Channel]int{}
	for i, class := range g.Classes {
		at[class] = i
	}
	total := make([]float64, len(g.Classes))
	for i, s := range g.Sources {
		if slices.ContainsFunc(g.Sources[:i], func(o coupling.Source) bool { return o.Value == s.Value }) {
			continue // a constant that two nodes share counts once
		}
		for j, u := range s.Channels {
			total[at[u]] += worth[s.Value].sums[j]
		}
	}
	return total
}
