package distill

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
)

// A Memory says what training takes, as planned, and what was done about it. Sizes are bytes.
type Memory struct {
	Weights, States, Sums int64 // of variables: the weights, also as they are rounded, what the optimizer keeps, sums of gradients
	Arena                 int64 // activations, gradients and scratch of a step
	Teacher, Batches      int64
	Layout                string
	Why                   []string // what was tried, where a budget chose
}

// Total is the sum of all.
func (m Memory) Total() int64 {
	return m.Weights + m.States + m.Sums + m.Arena + m.Teacher + m.Batches
}

// fit chooses a layout and makes its graphs.
func (t *Trainer) fit(ctx context.Context) error {
	p, err := t.settings.layout()
	if err != nil {
		return err
	}
	if t.budget > 0 {
		if p, err = t.within(ctx, p); err != nil {
			return err
		}
	}
	return t.open(ctx, p)
}

// open makes the graphs of a layout ready to run.
func (t *Trainer) open(ctx context.Context, p *layout) (err error) {
	t.layout = p
	t.begin(p)
	if err = t.cut(ctx, p); err != nil {
		return err
	}
	if t.step, err = t.graph(ctx, p); err != nil {
		return err
	}
	if err = t.step.open(ctx, t.workers, t.seed); err != nil {
		return err
	}
	if t.step.arena, err = usage(t.step.session); err != nil {
		return err
	}
	if t.update, err = t.newUpdate(ctx, p); err != nil {
		return err
	}
	if t.judge, err = t.newJudge(ctx, p.part()); err != nil {
		return err
	}
	why := t.state.Course.Memory.Why
	t.state.Course.Memory = t.memoryOf(p, t.arena())
	t.state.Course.Memory.Why = why
	if t.holds != nil {
		t.holds(t.state.Course.Memory.Total())
	}
	return nil
}

// arena is what the graphs take: the judge's only runs when the step's has given its memory up.
func (t *Trainer) arena() int64 { return together(t.step, t.update, t.judge) }

func together(st *step, u *update, j *judge) int64 {
	n := st.arena
	if u != nil {
		n += u.arena
	}
	if j != nil {
		n = max(n, j.arena)
	}
	return n
}

// begin gives variables what the layout asks for.
func (t *Trainer) begin(p *layout) {
	for _, v := range t.order {
		v.begin(t.settings.chosen())
		v.buffer = nil
		if p.apart() {
			v.buffer = newLike(v.array)
		}
	}
}

// memoryOf is what a layout takes whose graphs take so much.
func (t *Trainer) memoryOf(p *layout, arena int64) Memory {
	m := Memory{Weights: t.rounding.bytes(), Arena: arena, Layout: p.String()}
	largest := int64(0)
	for _, v := range t.order {
		m.Weights += v.array.Bytes()
		if p.apart() {
			m.Sums += v.array.Bytes()
		}
		states := int64(0)
		for _, s := range t.settings.chosen().states(v.array.Spec()) {
			states += s.Bytes()
		}
		m.States += states
		largest = max(largest, states)
	}
	if p.away {
		m.States = largest
	}
	m.Batches = t.set.Held(p.part())
	if t.teacher != nil {
		held, _ := t.teacher.session.Weights()
		m.Teacher = held + t.teacherArena(p.part())
	}
	return m
}

// teacherArena is what a run of the teacher takes, 0 where that is not known.
func (t *Trainer) teacherArena(n int) int64 {
	u, err := t.teacher.session.Usage(t.specs(n))
	if err != nil {
		return 0
	}
	return u.Plan.Size
}

// within finds the cheapest layout that fits into the budget: those that cost less time come first.
func (t *Trainer) within(ctx context.Context, asked *layout) (*layout, error) {
	least := int64(0)
	for _, p := range t.candidates(asked) {
		m, err := t.try(ctx, p)
		if err != nil {
			return nil, err
		}
		fits := m.Total() <= int64(t.budget)
		t.state.Course.Memory.Why = append(t.state.Course.Memory.Why, fmt.Sprintf("%s: %s%s", p, humanize.IBytes(uint64(m.Total())), verdict(fits)))
		if fits {
			return p, nil
		}
		if least == 0 || m.Total() < least {
			least = m.Total()
		}
	}
	if t.onOOM == "halve" && asked.batch > 1 {
		half := *asked
		half.batch, half.parts = asked.batch/2, 1
		t.state.Course.Memory.Why = append(t.state.Course.Memory.Why, fmt.Sprintf("batch size halved to %d", half.batch))
		return t.within(ctx, &half)
	}
	return nil, fmt.Errorf("--memory-budget %s: training needs at least %s; use --on-oom halve, a smaller --batch, --optimizer sgd or a larger budget", humanize.IBytes(uint64(t.budget)), humanize.IBytes(uint64(least)))
}

func verdict(fits bool) string {
	if fits {
		return " fits"
	}
	return " does not fit"
}

// candidates are the layouts that are tried, by the time that they cost. All but those in 16 bits give the same weights, up to
// rounding.
func (t *Trainer) candidates(asked *layout) []*layout {
	var out []*layout
	add := func(change func(p *layout)) {
		p := *asked
		change(&p)
		out = append(out, &p)
	}
	add(func(*layout) {})
	add(func(p *layout) { p.checkpoint = light })
	add(func(p *layout) { p.checkpoint = within })
	add(func(p *layout) { p.checkpoint = "auto" })
	for parts := 2; parts <= asked.batch && parts <= 16; parts *= 2 {
		if asked.batch%parts == 0 && t.fixed == 0 {
			add(func(p *layout) { p.checkpoint, p.parts = "auto", max(p.parts, parts) })
		}
	}
	most := out[len(out)-1].parts
	add(func(p *layout) { p.checkpoint, p.parts, p.away = "auto", most, true })
	add(func(p *layout) { p.checkpoint, p.parts, p.away, p.disk = "auto", most, true, true })
	return out
}

// try plans a layout. Where it keeps what there is room for, the room is found by planning again.
func (t *Trainer) try(ctx context.Context, p *layout) (Memory, error) {
	if p.checkpoint != within {
		return t.planned(ctx, p)
	}
	p.room = 1
	m, err := t.planned(ctx, p)
	if err != nil {
		return m, err
	}
	room := max(int64(t.budget)-(m.Total()-m.Arena), 1)
	for range 6 {
		p.room = room
		if m, err = t.planned(ctx, p); err != nil || m.Total() <= int64(t.budget) {
			return m, err
		}
		room -= max((m.Total()-int64(t.budget))*5/4, room/32)
		if room <= 0 {
			return m, nil
		}
	}
	return m, nil
}

// planned is what a layout takes.
func (t *Trainer) planned(ctx context.Context, p *layout) (Memory, error) {
	t.begin(p)
	if err := t.cut(ctx, p); err != nil {
		return Memory{}, err
	}
	st, err := t.drawn(ctx, p)
	if err != nil {
		return Memory{}, err
	}
	u, err := t.newUpdate(ctx, p)
	if err != nil {
		return Memory{}, err
	}
	j, err := t.newJudge(ctx, p.part())
	if err != nil {
		return Memory{}, err
	}
	return t.memoryOf(p, together(st, u, j)), errors.Join(u.close(), j.close())
}
