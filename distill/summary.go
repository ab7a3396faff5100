package distill

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/pass"
)

// summary returns the planned memory of a layout, with its peak by kind and the effect of each memory saving.
func (pl *planner) summary(ctx context.Context, c *candidate) (pass.TrainingMemory, error) {
	s := pass.TrainingMemory{Budget: int64(pl.settings.MemoryBudget), Memory: c.memory.sizes(), Layout: c.memory.Layout,
		Why: c.memory.Why}
	var err error
	if s.Trades, err = pl.trades(ctx, c); err != nil {
		return s, err
	}
	s.Peak, s.Live, err = c.peak()
	return s, err
}

// sizes returns the parts by use.
func (m *memoryUsage) sizes() []pass.Size {
	return []pass.Size{
		{Name: "program", Bytes: m.Program},
		{Name: "weights", Bytes: m.Weights}, {Name: "optimizer", Bytes: m.States},
		{Name: "accumulated gradients", Bytes: m.Sums}, {Name: "moving average", Bytes: m.Average},
		{Name: "frozen weights", Bytes: m.Constants}, {Name: "activations and gradients", Bytes: m.Arena},
		{Name: "teacher", Bytes: m.Teacher},
		{Name: "samples", Bytes: m.Samples}, {Name: "batches", Bytes: m.Batches}, {Name: "heap reserve", Bytes: m.Reserve},
	}
}

// maxLive is the number of values at the peak in reports.
const maxLive = 8

// peak returns the memory at the peak by kind, and the largest values of the arena. The peak is in a step, or in the
// evaluation.
func (c *candidate) peak() ([]pass.Size, []pass.LiveValue, error) {
	st, plan := c.step, c.step.blocks()
	// Graphs run one after the other in one arena, so that the largest has the peak.
	if c.evaluator != nil && c.evaluator.arena() > max(st.arena(), c.update.arena()) {
		st, plan = c.evaluator.step, c.evaluator.usage.Plan
	}
	line, err := memory.NewTimeline(plan.Blocks, len(st.usage.Steps))
	if err != nil || len(line.Peaks) == 0 {
		return nil, nil, err
	}
	at, m := line.Peaks[0], c.memory
	u := line.Live[at]
	var live []pass.LiveValue
	for _, b := range line.At(at) {
		if len(live) == maxLive {
			break
		}
		live = append(live, pass.LiveValue{Name: b.Name, Kind: b.Kind.String(), Layer: st.layerOf(b, st.usage.Steps),
			Bytes: b.Bytes})
	}
	return []pass.Size{
		{Name: "program", Bytes: m.Program},
		{Name: "weights", Bytes: m.Weights + m.Constants}, {Name: "gradients", Bytes: u[memory.Gradient] + m.Sums},
		{Name: "optimizer states", Bytes: m.States}, {Name: "moving average", Bytes: m.Average},
		{Name: "activations", Bytes: u[memory.Activation]}, {Name: "recomputed activations", Bytes: u[memory.Recomputed]},
		{Name: "scratch", Bytes: u[memory.Scratch]}, {Name: "unused arena", Bytes: m.Arena - u.Total()},
		{Name: "teacher", Bytes: m.Teacher}, {Name: "samples", Bytes: m.Samples}, {Name: "batches", Bytes: m.Batches},
		{Name: "heap reserve", Bytes: m.Reserve},
	}, live, nil
}

// layerOf returns the layer of a block.
func (st *step) layerOf(b memory.Block, steps []engine.Step) string {
	r, ok := st.roles[b.Name]
	if !ok {
		r = st.roleOf(steps[b.First])
	}
	if r.Layer == nil {
		return ""
	}
	return r.Layer.Label()
}

// A saving is one of the memory savings of a layout.
type saving struct {
	name   string
	used   bool
	revert func(p *layout)
}

// savings returns the memory savings that a layout may have.
func (p *layout) savings() []saving {
	return []saving{
		{fmt.Sprintf("activation checkpointing (%s)", p.checkpoint), p.checkpoint != "none", func(q *layout) {
			q.checkpoint, q.segments, q.recomputeCheap, q.exact = "none", nil, false, nil
		}},
		{fmt.Sprintf("gradient accumulation (%d micro-batches)", p.microBatches), p.microBatches > 1, func(q *layout) {
			q.microBatches = 1
		}},
		{p.storage + " storage", p.storage != "float32", func(q *layout) { q.storage, q.exact = "float32", nil }},
		{"activations offloaded", p.offloadActivations, func(q *layout) { q.offloadActivations = false }},
		{"optimizer states offloaded", p.offloadOptimizer, func(q *layout) { q.offloadOptimizer = false }},
	}
}

// trades plans a layout without each of its memory savings. A fixed batch size of the model is none of them.
func (pl *planner) trades(ctx context.Context, c *candidate) ([]pass.Trade, error) {
	var out []pass.Trade
	for _, s := range c.layout.savings() {
		q := *c.layout
		s.revert(&q)
		if !s.used || q.microBatches != c.layout.microBatches && pl.loader.fixedBatch > 0 {
			continue
		}
		// A complete plan each: savings overlap, so that their effects do not add up to the whole.
		without, err := pl.plan(ctx, &q)
		if err != nil {
			return nil, err
		}
		out = append(out, pass.Trade{Name: s.name, Saved: without.memory.Total() - c.memory.Total(),
			Work: c.step.overhead() - without.step.overhead()})
	}
	return out, nil
}

// overhead returns the work of recomputation as a fraction of that of a step without it.
func (st *step) overhead() float64 { return st.recomputed / max(1, 3*st.forward) }
