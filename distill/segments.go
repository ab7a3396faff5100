package distill

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
)

// chooseSegments chooses the recomputed segments of checkpoint "auto". Estimates of the stored activations give
// candidates, and the engine's memory plan selects among them, since it includes gradients, scratch memory and the
// activations inside a segment. Of the best candidate, segments whose recomputation does not reduce the plan are then
// stored again, longest compute time first.
func (pl *planner) chooseSegments(ctx context.Context, p *layout) error {
	if p.isPattern() {
		return pl.chooseLight(ctx, p)
	}
	if p.checkpoint != "auto" || p.segments != nil {
		return nil
	}
	q := *p
	tape, err := pl.tapeOf(ctx, p.microBatch())
	if err != nil {
		return err
	}
	smallest, err := pl.arena(ctx, &q)
	if err != nil {
		return err
	}
	try := func(segments []grad.Segment, cheap bool, limit int64) error {
		q.segments, q.recomputeCheap = segments, cheap
		arena, err := pl.arena(ctx, &q)
		// Limits are smallest-1 for candidates, of which ties are not worth recomputation, and smallest where segments are
		// stored again, which saves time.
		if err == nil && arena <= limit {
			p.segments, p.recomputeCheap, smallest = segments, cheap, arena
		}
		return err
	}
	// nil for no segments: recomputing cheap operators alone may be the smallest plan.
	for _, segments := range append(tape.profile.Choices(), nil) {
		for _, cheap := range []bool{false, true} {
			if err := try(segments, cheap, smallest-1); err != nil {
				return err
			}
		}
	}
	longest := slices.SortedFunc(slices.Values(p.segments), func(a, b grad.Segment) int {
		return cmp.Compare(tape.profile.Work(b), tape.profile.Work(a))
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
	plain, err := pl.arena(ctx, &q)
	if err != nil {
		return err
	}
	q.recomputeCheap = true
	cheap, err := pl.arena(ctx, &q)
	if err == nil {
		p.recomputeCheap = cheap < plain
	}
	return err
}

// planStep builds the graph of a step and plans its memory.
func (pl *planner) planStep(ctx context.Context, p *layout) (*step, error) {
	tape, err := pl.tapeOf(ctx, p.microBatch())
	if err != nil {
		return nil, err
	}
	st, err := pl.step(ctx, tape, p)
	if err != nil {
		return nil, err
	}
	return st, st.plan(ctx, pl.session())
}

// arena returns the arena of a step. Layouts that were planned before are not planned again.
func (pl *planner) arena(ctx context.Context, p *layout) (int64, error) {
	key := p.key()
	if bytes, ok := pl.arenas[key]; ok {
		return bytes, nil
	}
	st, err := pl.planStep(ctx, p)
	if err != nil {
		return 0, err
	}
	pl.arenas[key] = st.arena()
	return st.arena(), nil
}

// tapeOf returns the tape of a micro-batch, built once.
func (pl *planner) tapeOf(ctx context.Context, microBatch int) (*step, error) {
	if st := pl.tapes[microBatch]; st != nil {
		return st, nil
	}
	st, err := pl.tape(ctx, microBatch)
	pl.tapes[microBatch] = st
	return st, err
}
