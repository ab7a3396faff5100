package smoothing

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// Options are the migration strength and where factors are applied.
type Options struct {
	Alpha  float64 // migration strength, from 0 (activations unchanged) to 1
	Search bool    // search for the maximum output SQNR at 8 bits instead: one alpha, one per group, or no smoothing
	Insert bool    // insert a Mul before products where factors cannot be folded
}

// Smooth smooths all products of the main graph, and adds ledger rows of all eligible weights.
// It runs the samples once.
func Smooth(ctx context.Context, s *pass.Step, d *calibrate.Data, o Options) error {
	e := rescale.New(s)
	gs := groups(e, s.Model.Graph)
	if len(gs) == 0 {
		return nil
	}
	by := map[string]*group{}
	for _, g := range gs {
		by[g.x.Name] = g
	}
	err := d.Each(ctx, s, s.Model, names(gs), func(name string, a *ir.Array) error {
		by[name].seen.add(a, by[name].channels())
		return nil
	})
	if err != nil {
		return err
	}
	list, err := choices(ctx, s, gs, o)
	if err == nil && o.Search {
		list, err = selectBest(ctx, s, d, gs, list, o)
	}
	if err != nil {
		return err
	}
	// Applied after all choices: the statistics of a group are those of the model before any channel is scaled.
	for i, g := range gs {
		if err := apply(ctx, s, e, g, list[i]); err != nil {
			return err
		}
	}
	e.Report(pass.Smoothed, "")
	return nil
}

// choices are the choices of all groups, in order.
func choices(ctx context.Context, s *pass.Step, gs []*group, o Options) ([]choice, error) {
	list := make([]choice, len(gs))
	return list, pass.Parallel(ctx, s.Env.Workers, len(gs), func(ctx context.Context, i int) (err error) {
		g := gs[i]
		switch {
		case g.seen.useless != "":
			list[i].reason = pass.Reason{Code: pass.Inputs, Detail: g.x.Name + " " + g.seen.useless}
		case g.seen.runs == nil:
			list[i].reason.Code = pass.NotObserved
		case g.fold == nil && !o.Insert:
			list[i].reason = pass.Reason{Code: pass.NotScaled, Detail: g.x.Name}
		case o.Search:
			list[i], err = g.search(ctx)
		default:
			list[i], err = g.at(ctx, o.Alpha)
		}
		return err
	})
}

// apply scales g, or adds the reason why it is unchanged.
func apply(ctx context.Context, s *pass.Step, e *rescale.Editor, g *group, ch choice) error {
	// Weights of 3e38 times a factor would be written as infinities.
	if reason, err := g.overflow(ctx, ch.factor); err != nil {
		return err
	} else if !reason.None() {
		ch = choice{reason: reason}
	}
	if ch.factor == nil {
		for _, l := range g.layers {
			s.Ledger.Skip(l.Weight, []*ir.Node{l.Node}, ch.reason)
		}
		return nil
	}
	where := "folded into the producer"
	if g.fold == nil {
		where = "by an inserted Mul"
	}
	for _, l := range g.layers {
		e.Note(l.Weight, pass.Reason{Code: pass.Smoothed, Detail: fmt.Sprintf("alpha %g, %s", ch.alpha, where)})
	}
	return g.scale(ctx, ch.factor)
}
