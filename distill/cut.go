package distill

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
)

// cut chooses the segments of checkpoint "auto": estimates of what is kept name candidates, and the engine's plan is the judge of
// them, since gradients, scratch and what a segment holds at once count as well. Of the best one, segments that
// need not be computed again for the plan to stay as small are then kept, those first that take the longest.
func (t *Trainer) cut(ctx context.Context, p *layout) error {
	if p.checkpoint != "auto" || p.cuts != nil {
		return nil
	}
	q := *p
	whole, err := t.drawn(ctx, &q)
	if err != nil {
		return err
	}
	least := whole.arena
	smaller := func(cuts []grad.Segment, light bool, most int64) error {
		q.cuts, q.light = cuts, light
		st, err := t.drawn(ctx, &q)
		if err == nil && st.arena <= most {
			p.cuts, p.light, least = cuts, light, st.arena
		}
		return err
	}
	for _, cuts := range append(whole.profile.Choices(), nil) {
		for _, light := range []bool{false, true} {
			if err := smaller(cuts, light, least-1); err != nil {
				return err
			}
		}
	}
	longest := slices.SortedFunc(slices.Values(p.cuts), func(a, b grad.Segment) int {
		return cmp.Compare(whole.profile.Work(b), whole.profile.Work(a))
	})
	for _, s := range longest {
		rest := slices.DeleteFunc(slices.Clone(p.cuts), func(c grad.Segment) bool { return c == s })
		if err := smaller(rest, p.light, least); err != nil {
			return err
		}
	}
	return nil
}

// drawn is the graph of a step with what its plan takes.
func (t *Trainer) drawn(ctx context.Context, p *layout) (*step, error) {
	st, err := t.graph(ctx, p)
	if err != nil {
		return nil, err
	}
	st.arena, err = st.plan(ctx, t.workers)
	return st, err
}
