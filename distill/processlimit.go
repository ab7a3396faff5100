package distill

import (
	"context"
	"runtime/debug"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// A processLimit is the memory limit of the process while it trains: the memory budget, or the plan if the process does
// nothing else.
type processLimit struct {
	*environment
	budget    int64 // 0 for none
	exclusive bool  // the process does nothing else
	params    *parameters
	loader    *loader
	models    []*teacher // the other models that are in memory
	undo      func()     // nil without a limit
}

// set limits the memory of the process, unless limit is 0, and keeps spare bytes of it free for single allocations.
func (l *processLimit) set(limit, spare int64) {
	if limit == 0 {
		return
	}
	l.remove()
	l.undo = memory.Bound(limit, spare)
}

// remove restores the memory limit from before the training.
func (l *processLimit) remove() {
	if l.undo != nil {
		l.undo()
	}
	l.undo = nil
}

// setToPlan limits the memory of the process to the plan of a layout, with an arena of this size and the batches of all
// worker threads. The program has the measured size if that is larger.
func (l *processLimit) setToPlan(c *candidate, program, arena int64) {
	m := c.memory
	m.Program = max(m.Program, program) + memory.Threads(l.workers)
	m.Arena = max(m.Arena, arena)
	m.Batches = l.loader.held(c.layout.microBatch(), l.workers)
	l.set(m.Total(), m.Transient)
}

// measureProgram returns the memory of the process without the arrays of training that it has before layouts are
// planned.
func (l *processLimit) measureProgram() int64 {
	// Garbage of the models' loading is no part of the program.
	debug.FreeOSMemory()
	l.set(l.budget, 0)
	p := memory.Measure()
	// The plan has the arrays that are in memory already by themselves.
	n := p.Program + max(p.Resident, p.Go) - l.params.bytes() - l.loader.resident()
	for _, m := range l.models {
		n -= m.held
	}
	return n
}

// reduceWorkers reduces the number of worker threads if their scratch memory exceeds the budget. The results do not
// depend on it.
func (l *processLimit) reduceWorkers(ctx context.Context, c *candidate) error {
	defer func() {
		for _, m := range l.models {
			m.session.SetWorkers(l.workers)
		}
	}()
	for ; l.workers > serial; l.workers-- {
		most, err := l.largestArena(c, func(g *runnable) (int64, error) { return g.arenaWith(ctx, l.session(), l.workers) })
		if err != nil {
			return err
		}
		if c.memory.Total()-c.memory.Arena+max(most, c.memory.Arena)+memory.Threads(l.workers) <= l.budget {
			return nil
		}
	}
	return nil
}

// arenaWith returns the size of the arena with a number of worker threads.
func (r *runnable) arenaWith(ctx context.Context, o engine.Options, workers int) (int64, error) {
	o.PlanOnly = true
	s, err := engine.Open(ctx, r.model, o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	u, err := s.UsageWith(inputTypes(s), workers)
	if err != nil {
		return 0, err
	}
	return u.Plan.Size, nil
}

// reserveArena allocates the arena of all sessions. If the process does nothing else, and has no budget, it is limited
// to the plan, with a program of the measured size.
func (l *processLimit) reserveArena(c *candidate, program int64) error {
	most, err := l.largestArena(c, func(g *runnable) (int64, error) {
		u, err := g.session.Usage(inputTypes(g.session))
		if err != nil {
			return 0, err
		}
		return u.Plan.Size, nil
	})
	if err != nil {
		return err
	}
	if l.exclusive && l.budget == 0 {
		l.setToPlan(c, program, most)
	}
	l.arena.Reserve(most)
	return nil
}

// largestArena returns the size of the largest arena: of the graphs, and of the teachers with the worker threads that
// there are.
func (l *processLimit) largestArena(c *candidate, of func(*runnable) (int64, error)) (most int64, err error) {
	for _, g := range c.runnables() {
		n, err := of(g)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	specs := l.loader.specs(c.layout.microBatch())
	for _, m := range l.models {
		n, _ := m.usage(specs, l.workers)
		most = max(most, n)
	}
	return most, nil
}
