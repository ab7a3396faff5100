package distill

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
)

// A memoryUsage is the planned memory of training in bytes.
type memoryUsage struct {
	Weights, States, Sums int64 // weights with their dequantized values, optimizer states, accumulated gradients
	Average               int64 // moving average of the weights
	Arena                 int64 // activations, gradients and scratch memory of a step
	Teacher, Batches      int64
	Layout                string
	Why                   []string // the layouts that a memory budget was compared with
}

// serial is the number of worker threads of all plans: the scratch memory and the batches of further ones are not part of them, so that neither
// layouts nor reports depend on the number of worker threads.
const serial = 1

// Total is the sum of all parts.
func (m memoryUsage) Total() int64 {
	return m.Weights + m.States + m.Sums + m.Average + m.Arena + m.Teacher + m.Batches
}

// A planner chooses the layout of training steps. It neither reads weights nor allocates arrays.
type planner struct {
	*graphBuilder
	teachers *teachers
	why      []string
	tapes    map[int]*step    // by micro-batch
	arenas   map[string]int64 // of steps by key of the layout
}

// A candidate is a layout with its graphs and their planned memory.
type candidate struct {
	layout    *layout
	step      *step
	update    *accumulatedUpdate // nil if steps update weights
	evaluator *evaluator         // nil without validation set
	memory    memoryUsage
}

// choose plans the layout of the options, or the fastest one within the memory budget.
func (pl *planner) choose(ctx context.Context) (*candidate, error) {
	p, err := pl.settings.layout()
	if err != nil {
		return nil, err
	}
	if pl.settings.MemoryBudget > 0 {
		return pl.withinBudget(ctx, p)
	}
	return pl.plan(ctx, p)
}

// arena is that of all graphs: the evaluator's graph runs after the step has released its memory.
func (c *candidate) arena() int64 {
	n := c.step.arena() + c.update.arena()
	if c.evaluator != nil {
		n = max(n, c.evaluator.arena())
	}
	return n
}

// usage returns the memory of a layout whose graphs have an arena of this size.
func (pl *planner) usage(p *layout, arena int64) memoryUsage {
	m := memoryUsage{Weights: pl.fakeQuant.bytes(), Arena: arena, Layout: p.String(), Why: pl.why}
	largest := int64(0)
	for _, w := range pl.params.weights {
		m.Weights += w.array.Bytes()
		if p.accumulates() {
			m.Sums += w.array.Bytes()
		}
		states := int64(0)
		for _, s := range w.states {
			states += s.Bytes()
		}
		m.States += states
		largest = max(largest, states)
	}
	if p.offloadOptimizer {
		m.States = largest
	}
	if pl.settings.EMA > 0 {
		m.Average = pl.params.bytes()
	}
	m.Batches = pl.loader.held(p.microBatch())
	m.Teacher = pl.teachers.bytes(pl.loader.specs(p.microBatch())) + pl.measure.bytes(pl.loader.specs(p.microBatch()))
	return m
}

// withinBudget returns the first candidate that fits into the memory budget.
func (pl *planner) withinBudget(ctx context.Context, given *layout) (*candidate, error) {
	budget, smallest := int64(pl.settings.MemoryBudget), int64(0)
	for _, p := range pl.candidates(given) {
		c, err := pl.try(ctx, p)
		if err != nil {
			return nil, err
		}
		total, result := c.memory.Total(), "does not fit"
		if total <= budget {
			result = "fits"
		}
		pl.why = append(pl.why, fmt.Sprintf("%s: %s %s", p, humanize.IBytes(uint64(total)), result))
		if total <= budget {
			c.memory.Why = pl.why
			return c, nil
		}
		if smallest == 0 || total < smallest {
			smallest = total
		}
	}
	if pl.settings.OnOOM == "halve" && given.batch > 1 {
		half := *given
		half.batch, half.microBatches = given.batch/2, 1
		pl.why = append(pl.why, fmt.Sprintf("batch size halved to %d", half.batch))
		return pl.withinBudget(ctx, &half)
	}
	return nil, fmt.Errorf("--memory-budget %s: training needs at least %s; use --on-oom halve, a smaller --batch, --optimizer sgd or a larger budget", humanize.IBytes(uint64(budget)), humanize.IBytes(uint64(smallest)))
}

// candidates returns the layouts to try, fastest first. None of them changes the result of training but for the order of sums.
func (pl *planner) candidates(given *layout) []*layout {
	var out []*layout
	add := func(change func(p *layout)) {
		p := *given
		change(&p)
		out = append(out, &p)
	}
	add(func(*layout) {})
	add(func(p *layout) { p.checkpoint = light })
	add(func(p *layout) { p.checkpoint = within })
	add(func(p *layout) { p.checkpoint = "auto" })
	for n := 2; n <= given.batch && n <= 16; n *= 2 {
		if given.batch%n == 0 && pl.loader.fixedBatch == 0 {
			add(func(p *layout) { p.checkpoint, p.microBatches = "auto", max(p.microBatches, n) })
		}
	}
	most := out[len(out)-1].microBatches
	add(func(p *layout) { p.checkpoint, p.microBatches, p.offloadOptimizer = "auto", most, true })
	add(func(p *layout) {
		p.checkpoint, p.microBatches, p.offloadOptimizer, p.offloadActivations = "auto", most, true, true
	})
	return out
}

// try plans a layout. The size of the activations that checkpoint "within" stores is found by repeated planning.
func (pl *planner) try(ctx context.Context, p *layout) (*candidate, error) {
	if p.checkpoint != within {
		return pl.plan(ctx, p)
	}
	p.storedBytes = 1
	c, err := pl.plan(ctx, p)
	if err != nil {
		return nil, err
	}
	budget := int64(pl.settings.MemoryBudget)
	stored := max(budget-(c.memory.Total()-c.memory.Arena), 1)
	for range 6 {
		p.storedBytes = stored
		if c, err = pl.plan(ctx, p); err != nil || c.memory.Total() <= budget {
			return c, err
		}
		stored -= max((c.memory.Total()-budget)*5/4, stored/32)
		if stored <= 0 {
			break
		}
	}
	return c, nil
}

// plan builds and plans the graphs of a layout.
func (pl *planner) plan(ctx context.Context, p *layout) (*candidate, error) {
	if err := pl.chooseSegments(ctx, p); err != nil {
		return nil, err
	}
	if err := pl.chooseStorage(ctx, p); err != nil {
		return nil, err
	}
	c := &candidate{layout: p, update: pl.accumulatedUpdate(p)}
	var err error
	if c.step, err = pl.planStep(ctx, p); err != nil {
		return nil, err
	}
	if err = c.update.plan(ctx, pl.session()); err != nil {
		return nil, err
	}
	if c.evaluator, err = pl.planEvaluator(ctx, p.microBatch()); err != nil {
		return nil, err
	}
	p.stored = c.step.stored
	c.memory = pl.usage(p, c.arena())
	return c, nil
}

// planEvaluator builds and plans the evaluator's graph; nil without a validation set.
func (pl *planner) planEvaluator(ctx context.Context, batch int) (*evaluator, error) {
	e, err := pl.evaluator(ctx, batch)
	if e == nil || err != nil {
		return nil, err
	}
	return e, e.plan(ctx, pl.session())
}
