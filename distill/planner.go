package distill

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
)

// A memoryUsage is the planned memory of the process in training, in bytes.
type memoryUsage struct {
	Program int64 // program, Go runtime and graphs
	// weights with their dequantized values, masks and scores, optimizer states, accumulated gradients
	Weights, States, Sums int64
	Average               int64 // moving average of the weights
	Constants             int64 // weights that are not trained, in the sessions of the graphs
	Arena                 int64 // activations, gradients and scratch memory of a step
	Teacher               int64 // weights
	Samples               int64 // data that are in memory all the time
	Batches               int64 // of samples: the current one and those that are read ahead
	Transient             int64 // arrays that are allocated and dropped between two steps: a part of Reserve
	Reserve               int64 // of the heap, for garbage
	Layout                string
	Why                   []string // the layouts that a memory budget was compared with
}

// serial is the number of worker threads of all plans: the scratch memory and the batches of further ones are not part
// of them, so that neither layouts nor reports depend on the number of worker threads.
const serial = 1

// arrays is the memory of all arrays.
func (m memoryUsage) arrays() int64 {
	return m.Weights + m.States + m.Sums + m.Average + m.Constants + m.Arena + m.Teacher + m.Samples + m.Batches
}

// Total is the memory of the process.
func (m memoryUsage) Total() int64 { return m.Program + m.arrays() + m.Reserve }

// A planner chooses the layout of training steps. It neither reads weights nor allocates arrays.
type planner struct {
	*graphBuilder
	models      []*teacher // the other models that are in memory
	programSize int64      // size of the program; 0 if the usual one is planned
	later       int64      // memory that the process has after the training besides the program
	why         []string
	smallest    int64            // of the layouts that were tried
	tapes       map[int]*step    // by micro-batch
	arenas      map[string]int64 // of steps by key of the layout
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

// runnables are the graphs of training, besides those of teachers.
func (c *candidate) runnables() []*runnable {
	all := []*runnable{&c.step.runnable}
	for _, g := range c.update.inOrder() {
		all = append(all, &g.runnable)
	}
	return append(all, c.evaluator.runnables()...)
}

// open opens the graphs. Random numbers of a step depend on the seed.
func (c *candidate) open(ctx context.Context, o engine.Options, seed uint64) error {
	seeded := o
	seeded.Seed = seed
	if err := c.step.open(ctx, seeded); err != nil {
		return err
	}
	if err := c.update.open(ctx, o); err != nil {
		return err
	}
	return c.evaluator.open(ctx, o)
}

// usage returns the memory of a candidate.
func (pl *planner) usage(c *candidate) memoryUsage {
	p := c.layout
	m := memoryUsage{Weights: pl.fakeQuant.bytes(), Layout: p.String(), Why: pl.why}
	nodes := pl.nodes
	for _, g := range c.runnables() { // which run one after the other
		m.Arena = max(m.Arena, g.arena())
		m.Constants += g.constants
		m.Transient = max(m.Transient, g.usage.Outputs)
	}
	largest := int64(0)
	for _, w := range pl.params.weights {
		m.Weights += w.array.Bytes()
		if w.shared != nil {
			m.Weights += w.shared.bytes()
		}
		if w.mask != nil {
			m.Weights += w.mask.Bytes() + w.scores.Bytes()
		}
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
		// Those of one weight at a time; reading them allocates them anew.
		m.States = largest
		m.Transient = max(m.Transient, largest)
	}
	if pl.settings.EMA > 0 {
		m.Average = pl.params.bytes()
	}
	m.Samples, m.Batches = pl.loader.resident(), pl.loader.held(p.microBatch(), serial)
	// Of a batch, besides that of a run: decoded images and texts are new for each.
	m.Transient += pl.loader.transient(p.microBatch())
	specs := pl.loader.specs(p.microBatch())
	for _, t := range pl.models {
		arena, outputs := t.usage(specs, serial)
		m.Teacher += t.held
		// Teachers share the arena: they run before the step of each batch.
		m.Arena = max(m.Arena, arena)
		m.Transient += outputs
		nodes += t.nodes
	}
	// Not measured unless the process is larger: measurements differ from run to run, and layouts must not.
	m.Program = memory.ProgramOf(nodes, pl.programSize)
	// Last, as it depends on all arrays. A collection begins after the allocation that exceeds the limit: the largest
	// one is kept free.
	m.Reserve = memory.Headroom(m.arrays(), m.Transient)
	return m
}

// withinBudget returns the first candidate that fits into the memory budget.
func (pl *planner) withinBudget(ctx context.Context, given *layout) (*candidate, error) {
	budget := int64(pl.settings.MemoryBudget)
	// The first that fits is the fastest that fits.
	for _, p := range pl.candidates(given) {
		c, err := pl.planLayout(ctx, p)
		if err != nil {
			return nil, err
		}
		// The process must fit after the training, too.
		total, result := max(c.memory.Total(), c.memory.Program+pl.later), "does not fit"
		if total <= budget {
			result = "fits"
		}
		pl.why = append(pl.why, fmt.Sprintf("%s: %s %s", p, humanize.IBytes(uint64(total)), result))
		if total <= budget {
			c.memory.Why = pl.why
			return c, nil
		}
		if p.checkpoint != within && (pl.smallest == 0 || total < pl.smallest) { // which do not depend on the budget
			pl.smallest = total
		}
	}
	if pl.halves(given) {
		// Last, as another batch size changes the result of training, which layouts do not.
		half := pl.half(given)
		pl.why = append(pl.why, fmt.Sprintf("batch size halved to %d", half.batch))
		return pl.withinBudget(ctx, half)
	}
	return nil, pl.budgetError(given)
}

// candidates returns the layouts to try, fastest first. None of them changes the result of training but for the order
// of sums.
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

// planLayout plans a layout. The size of the activations that checkpoint "within" stores is found by repeated planning.
func (pl *planner) planLayout(ctx context.Context, p *layout) (*candidate, error) {
	if p.checkpoint != within {
		return pl.plan(ctx, p)
	}
	// The memory besides the arena is the same whatever is stored: what it leaves of the budget is the first
	// estimate.
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
		// By more than the excess, since each correction is another plan.
		stored -= max((c.memory.Total()-budget)*5/4, stored/32)
		if stored <= 0 {
			break
		}
	}
	return c, nil
}

// plan builds and plans the graphs of a layout.
func (pl *planner) plan(ctx context.Context, p *layout) (*candidate, error) {
	// Segments first: what is recomputed has no storage to choose.
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
	c.memory = pl.usage(c)
	return c, nil
}

// planEvaluator builds and plans the evaluator's graph; nil without a validation set.
func (pl *planner) planEvaluator(ctx context.Context, batch int) (*evaluator, error) {
	e, err := pl.evaluator(ctx, batch)
	if err != nil {
		return nil, err
	}
	for _, g := range e.runnables() {
		if err := g.plan(ctx, pl.session()); err != nil {
			return nil, err
		}
	}
	return e, nil
}
