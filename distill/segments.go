package distill

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
)

// chooseSegments chooses the recomputed segments of checkpoint "auto". Estimates of the stored activations give candidates, and the engine's
// memory plan selects among them, since it includes gradients, scratch memory and the activations inside a segment. Of the best candidate,
// segments whose recomputation does not reduce the plan are then stored again, longest compute time first.
func (pl *planner) chooseSegments(ctx context.Context, p *layout) error {
	if p.isPattern() {
		return pl.chooseLight(ctx, p)
	}
	if p.checkpoint != "auto" || p.segments != nil {
		return nil
	}
	q := *p
	plain, err := pl.planStep(ctx, &q)
	if err != nil {
		return err
	}
	smallest := plain.arena()
	try := func(segments []grad.Segment, cheap bool, limit int64) error {
		q.segments, q.recomputeCheap = segments, cheap
		st, err := pl.planStep(ctx, &q)
		if err == nil && st.arena() <= limit {
			p.segments, p.recomputeCheap, smallest = segments, cheap, st.arena()
		}
		return err
	}
	for _, segments := range append(plain.profile.Choices(), nil) {
		for _, cheap := range []bool{false, true} {
			if err := try(segments, cheap, smallest-1); err != nil {
				return err
			}
		}
	}
	longest := slices.SortedFunc(slices.Values(p.segments), func(a, b grad.Segment) int {
		return cmp.Compare(plain.profile.Work(b), plain.profile.Work(a))
	})
	for _, s := range longest {
		rest := slices.DeleteFunc(slices.Clone(p.segments), func(c grad.Segment) bool { return c == s })
		if err := try(rest, p.recomputeCheap, smallest); err != nil {
			return err
		}
	}
	return nil
}

// chooseLight recomputes cheap operators besides named blocks if that reduces the plan.
func (pl *planner) chooseLight(ctx context.Context, p *layout) error {
	q := *p
	q.recomputeCheap = false
	plain, err := pl.planStep(ctx, &q)
	if err != nil {
		return err
	}
	q.recomputeCheap = true
	cheap, err := pl.planStep(ctx, &q)
	if err == nil {
		p.recomputeCheap = cheap.arena() < plain.arena()
	}
	return err
}

// planStep builds the graph of a step and plans its memory.
func (pl *planner) planStep(ctx context.Context, p *layout) (*step, error) {
	st, err := pl.step(ctx, p)
	if err != nil {
		return nil, err
	}
	return st, st.plan(ctx, pl.session())
}
