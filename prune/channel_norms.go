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

// normsOf computes the norms of constants, each once, in parallel, by one worker so that its sums have one order.
func normsOf(ctx context.Context, step *pass.Step, sources []coupling.Source) (map[*ir.Value]*norms, error) {
	of := map[*ir.Value]*norms{}
	var vs []*ir.Value
	for _, s := range sources {
		if of[s.Value] == nil {
			of[s.Value] = &norms{axis: span{product(s.Shape[:s.Axis]), s.Shape[s.Axis], product(s.Shape[s.Axis+1:])}}
			vs = append(vs, s.Value)
		}
	}
	s := &buffers{}
	return of, pass.Parallel(ctx, step.Env.Workers, len(vs), func(ctx context.Context, i int) error {
		return of[vs[i]].measure(ctx, step, s, vs[i].Const)
	})
}

// addNorms adds the norms of the filters that may be pruned to the importances of their classes. Groups with NaN or
// infinities get a reason.
func addNorms(ctx context.Context, step *pass.Step, groups []*coupling.Group,
	worth map[coupling.Channel]float64) error {
	var sources []coupling.Source
	for _, g := range groups {
		if g.Reason.None() {
			sources = append(sources, g.Sources...)
		}
	}
	of, err := normsOf(ctx, step, sources)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.Reason.None() {
			addNormsOf(g, of, worth)
		}
	}
	return nil
}

// addNormsOf adds the norms of all filters of g's classes.
func addNormsOf(g *coupling.Group, of map[*ir.Value]*norms, worth map[coupling.Channel]float64) {
	for i, s := range g.Sources {
		if !of[s.Value].finite {
			g.Reason = pass.Reason{Code: pass.NotFinite, Detail: s.Value.Name}
			return
		}
		if slices.ContainsFunc(g.Sources[:i], func(o coupling.Source) bool { return o.Value == s.Value }) {
			continue // a constant that two nodes share counts once
		}
		for j, u := range s.Channels {
			worth[u] += of[s.Value].sums[j]
		}
	}
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
