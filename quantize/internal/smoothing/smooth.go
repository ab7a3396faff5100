package smoothing

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// Options say how much is moved.
type Options struct {
	Alpha  float64 // from 0, nothing of the activations' differences, to 1, all
	Search bool    // finds what is best for the model's outputs at 8 bits instead: one alpha, one for each group, or nothing
	Insert bool    // puts a Mul in front of products where factors cannot be folded
}

// Smooth does it for all products of the main graph, and adds rows of all weights that could
// take part. Samples are run once.
func Smooth(c *pass.Context, d *calibrate.Data, o Options) error {
	e := rescale.New(c)
	gs := groups(e, c.Model.Graph)
	if len(gs) == 0 {
		return nil
	}
	by := map[string]*group{}
	for _, g := range gs {
		by[g.x.Name] = g
	}
	err := d.Each(c, c.Model, names(gs), func(name string, a *ir.Array) error {
		g := by[name]
		if err := g.seen.add(a, g.channels()); err != nil {
			return fmt.Errorf("value %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	list, err := choices(c, gs, o)
	if err == nil && o.Search {
		list, err = proven(c, d, gs, list, o)
	}
	if err != nil {
		return err
	}
	for i, g := range gs {
		if err := apply(c, e, g, list[i]); err != nil {
			return err
		}
	}
	e.Report("its channels take over what activations differ by", "")
	return nil
}

// choices are those of all groups, in their order.
func choices(c *pass.Context, gs []*group, o Options) ([]choice, error) {
	list := make([]choice, len(gs))
	return list, c.Parallel(len(gs), func(_ context.Context, i int) (err error) {
		g := gs[i]
		switch {
		case g.seen.runs == nil:
			list[i].why = "no sample reached it"
		case g.fold == nil && !o.Insert:
			list[i].why = "what makes its input takes no factors"
		case o.Search:
			list[i], err = g.search()
		default:
			list[i], err = g.at(o.Alpha)
		}
		return err
	})
}

// apply scales g, or says why it is left alone.
func apply(c *pass.Context, e *rescale.Editor, g *group, ch choice) error {
	if ch.factor == nil {
		for _, l := range g.layers {
			c.Skip(l.Weight, []*ir.Node{l.Node}, ch.why)
		}
		return nil
	}
	where := "folded into what makes them"
	if g.fold == nil {
		where = "by a Mul"
	}
	for _, l := range g.layers {
		e.Say(l.Weight, fmt.Sprintf("alpha %g, %s", ch.alpha, where))
	}
	return g.scale(ch.factor)
}
