package distill

import (
	"context"
	"maps"
)

// maxStoragePlans limits the plans of chooseStorage.
const maxStoragePlans = 48

// chooseStorage stores activations in float32 where another type does not reduce the plan: all of them if the smallest
// layout in float32 is not larger, otherwise groups of them, halved until a group has no effect.
func (pl *planner) chooseStorage(ctx context.Context, p *layout) error {
	if p.storage == "float32" || p.offloadActivations || p.exact != nil {
		return nil
	}
	converted, err := pl.planStep(ctx, p)
	if err != nil {
		return err
	}
	plain := *p
	// Segments of its own: those that were chosen for another storage are of other sizes.
	plain.storage, plain.segments, plain.recomputeCheap = "float32", nil, false
	if err := pl.chooseSegments(ctx, &plain); err != nil {
		return err
	}
	st, err := pl.planStep(ctx, &plain)
	if err != nil {
		return err
	}
	// Of equal arenas that of exact values.
	if st.arena() <= converted.arena() {
		*p = plain
		return nil
	}
	smallest := converted.arena()
	p.exact = map[string]bool{}
	groups := [][]string{converted.stored.names}
	for n := 0; n < maxStoragePlans && len(groups) > 0; n++ {
		group := groups[0]
		groups = groups[1:]
		q := *p
		q.exact = maps.Clone(p.exact)
		for _, name := range group {
			q.exact[name] = true
		}
		// Equal is enough: exact values cost nothing then.
		if st, err := pl.planBelow(ctx, &q, converted, group, smallest); err != nil {
			return err
		} else if st != nil {
			p.exact, converted = q.exact, st
		} else if half := len(group) / 2; half > 0 {
			groups = append(groups, group[:half], group[half:])
		}
	}
	return nil
}

// planBelow plans a layout in which a group of converted activations is stored in float32; nil if its arena is larger
// than most. Most layouts need no plan for that.
func (pl *planner) planBelow(ctx context.Context, p *layout, converted *step, group []string,
	most int64) (*step, error) {
	if converted.floor(group) > most {
		return nil, nil
	}
	st, err := pl.planStep(ctx, p)
	if err != nil || st.arena() > most {
		return nil, err
	}
	return st, nil
}
