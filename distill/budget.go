package distill

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// A BudgetError is a memory budget that is too small. Nothing was trained.
type BudgetError struct {
	Budget   int64
	Smallest int64    // budget in bytes that suffices in such a process
	Hints    []string // other options that save memory
}

// Error has the smallest budget in the form of the option.
func (e *BudgetError) Error() string {
	smallest := fmt.Sprintf("%dMiB", e.Smallest>>20)
	ways := append([]string{"--memory-budget " + smallest}, e.Hints...)
	return fmt.Sprintf("--memory-budget %s: the process needs at least %s; use %s", humanize.IBytes(uint64(e.Budget)), smallest, strings.Join(ways, " or "))
}

// budgetError is the error of a budget that no layout fits into.
func (pl *planner) budgetError(given *layout) error {
	const grain = 1 << 20
	e := &BudgetError{Budget: int64(pl.settings.MemoryBudget), Smallest: (pl.smallest + grain - 1) / grain * grain}
	if given.batch > max(1, pl.loader.fixedBatch) {
		e.Hints = append(e.Hints, "a smaller --batch")
		if pl.settings.OnOOM != "halve" {
			e.Hints = append(e.Hints, "--on-oom halve")
		}
	}
	if pl.settings.Optimizer != "sgd" {
		e.Hints = append(e.Hints, "--optimizer sgd")
	}
	return e
}

// halves reports whether the batch size is halved if no layout fits.
func (pl *planner) halves(p *layout) bool {
	return pl.settings.OnOOM == "halve" && p.batch/2 > 0 && (pl.loader.fixedBatch == 0 || p.batch/2%pl.loader.fixedBatch == 0)
}

// half returns a layout with half of the batch size.
func (pl *planner) half(p *layout) *layout {
	half := *p
	half.batch, half.microBatches = p.batch/2, 1
	if pl.loader.fixedBatch > 0 {
		half.microBatches = half.batch / pl.loader.fixedBatch
	}
	return &half
}

// bounded is a trainer whose process has a memory limit.
type bounded struct{ *trainer }

// bound limits the memory of the process, unless limit is 0, and keeps spare bytes of it free for single allocations.
func (t bounded) bound(limit, spare int64) {
	if limit == 0 {
		return
	}
	if t.unbound != nil {
		t.unbound()
	}
	t.unbound = memory.Bound(limit, spare)
}

// boundToPlan limits the memory of the process to the plan, with an arena of this size and the batches of all worker threads. The program has the
// measured size if that is larger.
func (t bounded) boundToPlan(program, arena int64) {
	m := t.memory
	m.Program = max(m.Program, program) + memory.Threads(t.workers)
	m.Arena = max(m.Arena, arena)
	m.Batches = t.loader.held(t.layout.microBatch(), t.workers)
	t.bound(m.Total(), m.Transient)
}

// measureProgram returns the memory of the process without the arrays of training that it has before layouts are planned.
func (t bounded) measureProgram() int64 {
	debug.FreeOSMemory()
	t.bound(int64(t.settings.MemoryBudget), 0)
	p := memory.Measure()
	n := p.Program + max(p.Resident, p.Go) - t.params.bytes() - t.loader.resident()
	for _, m := range models(t.teachers, t.measure) {
		n -= m.held
	}
	return n
}

// limitWorkers reduces the number of worker threads if their scratch memory exceeds the budget. The results do not depend on it.
func (t bounded) limitWorkers(ctx context.Context, c *candidate) error {
	defer func() {
		for _, m := range models(t.teachers, t.measure) {
			m.session.SetWorkers(t.workers)
		}
	}()
	for ; t.workers > serial; t.workers-- {
		most, err := t.largestArena(c, func(g *runnable) (int64, error) { return g.arenaWith(ctx, t.session(), t.workers) })
		if err != nil {
			return err
		}
		if c.memory.Total()-c.memory.Arena+max(most, c.memory.Arena)+memory.Threads(t.workers) <= int64(t.settings.MemoryBudget) {
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
	u, err := s.UsageWith(declared(s), workers)
	if err != nil {
		return 0, err
	}
	return u.Plan.Size, nil
}

// reserveArena allocates the arena of all sessions. If the process does nothing else, and has no budget, it is limited to the plan, with a program of
// the measured size.
func (t bounded) reserveArena(c *candidate, program int64) error {
	most, err := t.largestArena(c, func(g *runnable) (int64, error) {
		u, err := g.session.Usage(declared(g.session))
		if err != nil {
			return 0, err
		}
		return u.Plan.Size, nil
	})
	if err != nil {
		return err
	}
	if t.alone && t.settings.MemoryBudget == 0 {
		t.boundToPlan(program, most)
	}
	t.arena.Reserve(most)
	return nil
}

// largestArena returns the size of the largest arena: of the graphs, and of the teachers with the worker threads that there are.
func (t bounded) largestArena(c *candidate, of func(*runnable) (int64, error)) (most int64, err error) {
	for _, g := range c.graphs() {
		n, err := of(g)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	specs := t.loader.specs(c.layout.microBatch())
	for _, m := range models(t.teachers, t.measure) {
		n, _ := m.usage(specs, t.workers)
		most = max(most, n)
	}
	return most, nil
}
