package distill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// An accumulatedUpdate updates weights by accumulated gradients, in graphs of its own: one for all weights, or one per
// weight if optimizer states are on disk, so that those of one weight at a time are in memory.
type accumulatedUpdate struct {
	norm   *updateGraph // computes hyperparameters with gradient clipping; nil without
	graphs []*updateGraph
	params []*parameter
}

// An updateGraph is one graph of updates.
type updateGraph struct {
	runnable
	feeds               map[string]*ir.Array
	hyper, hyperNoDecay string
	outputs             []string
	params              []*parameter
	file                string // of the states of the only parameter; empty if they are in memory
}

// accumulatedUpdate builds the graphs, if the layout accumulates gradients; nil otherwise.
func (b *graphBuilder) accumulatedUpdate(p *layout) *accumulatedUpdate {
	if !p.accumulates() {
		return nil
	}
	u := &accumulatedUpdate{params: b.params.weights}
	if b.settings.Clip > 0 {
		u.norm = b.normGraph()
	}
	if !p.offloadOptimizer {
		u.graphs = []*updateGraph{b.updateGraph(b.params.weights)}
		return u
	}
	for i, w := range b.params.weights {
		g := b.updateGraph([]*parameter{w})
		// A file for each weight: updates read and write the states of one after the other.
		g.file = filepath.Join(b.folder, fmt.Sprintf("states.%d", i))
		u.graphs = append(u.graphs, g)
	}
	return u
}

// inOrder returns the graphs in the order of their runs.
func (u *accumulatedUpdate) inOrder() []*updateGraph {
	switch {
	case u == nil:
		return nil
	case u.norm == nil:
		return u.graphs
	}
	return append([]*updateGraph{u.norm}, u.graphs...)
}

// open opens all graphs, and creates the states that are offloaded.
func (u *accumulatedUpdate) open(ctx context.Context, o engine.Options) error {
	for _, g := range u.inOrder() {
		if err := g.open(ctx, o); err != nil {
			return err
		}
		if g.file == "" {
			continue
		}
		// Written once before the first step: fetch has no other case than a complete file.
		zero(g.params[0].states...)
		if err := g.offload(); err != nil {
			return err
		}
	}
	return nil
}

// updateGraph builds the graph for some parameters.
func (b *graphBuilder) updateGraph(params []*parameter) *updateGraph {
	graph := grad.NewBuilder()
	o := newOptimizerGraph(b.settings, graph)
	g := &updateGraph{runnable: runnable{model: graph.Model}, feeds: o.feeds, params: params, hyper: o.hyper.Name,
		hyperNoDecay: o.hyperNoDecay.Name}
	for _, p := range params {
		sum := graph.Input(p.name+".sum", ir.Float, p.array.Shape...)
		o.feeds[sum.Name] = p.gradSum
		o.update(p, o.weight(p), sum)
	}
	graph.Graph().AddOutput(o.squareSum())
	g.outputs = []string{graph.Graph().Outputs[0].Name}
	return g
}

// normGraph builds the graph of gradient clipping.
func (b *graphBuilder) normGraph() *updateGraph {
	graph := grad.NewBuilder()
	o := newOptimizerGraph(b.settings, graph)
	g := &updateGraph{runnable: runnable{model: graph.Model}, feeds: o.feeds, hyper: o.hyper.Name,
		hyperNoDecay: o.hyperNoDecay.Name}
	var sums []*ir.Value
	for _, p := range b.params.weights {
		sum := graph.Input(p.name+".sum", ir.Float, p.array.Shape...)
		o.feeds[sum.Name] = p.gradSum
		sums = append(sums, sum)
	}
	o.clip(sums)
	for _, v := range []*ir.Value{o.hyper, o.hyperNoDecay} {
		graph.Graph().AddOutput(v)
		g.outputs = append(g.outputs, v.Name)
	}
	return g
}

// plan plans all graphs.
func (u *accumulatedUpdate) plan(ctx context.Context, o engine.Options) error {
	for _, g := range u.inOrder() {
		if err := g.plan(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// arena returns the planned size of the largest arena, as one graph runs at a time.
func (u *accumulatedUpdate) arena() (most int64) {
	for _, g := range u.inOrder() {
		most = max(most, g.runnable.arena())
	}
	return most
}

// runGraphs updates all weights and clears the accumulated gradients. It returns the sum of the gradients' squares.
func (u *accumulatedUpdate) runGraphs(ctx context.Context, h hyperparameters) (total float64, err error) {
	hyper, hyperNoDecay := h.array(h.decay), h.array(0)
	// The factor of clipping depends on the gradients of all weights: before the first update.
	if u.norm != nil {
		out, err := u.norm.run(ctx, hyper, hyperNoDecay)
		if err != nil {
			return 0, err
		}
		hyper, hyperNoDecay = out[u.norm.outputs[0]], out[u.norm.outputs[1]]
	}
	for _, g := range u.graphs {
		if err := g.fetch(); err != nil {
			return 0, err
		}
		out, err := g.run(ctx, hyper, hyperNoDecay)
		if err != nil {
			return 0, err
		}
		// Not finite if the gradient of any weight is: the loss scale is halved, and updates of such weights changed
		// nothing.
		total += float64(ir.View[float32](out[g.outputs[0]])[0])
		if err := g.offload(); err != nil {
			return 0, err
		}
	}
	// The next step adds to them.
	for _, p := range u.params {
		clear(p.gradSum.Data)
	}
	return total, nil
}

func (g *updateGraph) run(ctx context.Context, hyper, hyperNoDecay *ir.Array) (map[string]*ir.Array, error) {
	args := map[string]*ir.Array{g.hyper: hyper, g.hyperNoDecay: hyperNoDecay}
	for name, a := range g.feeds {
		args[name] = a
	}
	return g.session.Run(ctx, args, nil)
}

// fetch reads offloaded states into memory.
func (g *updateGraph) fetch() error {
	if g.file == "" {
		return nil
	}
	f, err := os.Open(g.file)
	if err != nil {
		return err
	}
	defer f.Close()
	off := int64(0)
	for _, s := range g.params[0].states {
		// Allocated anew for each weight, which the plan counts as transient; between two fetches states take no memory.
		s.Data = ir.AlignedBytes(s.Bytes())
		if err := ir.ReadFull(f, s.Data, off); err != nil {
			return err
		}
		off += int64(len(s.Data))
	}
	return nil
}

// offload writes offloaded states back and releases their memory.
func (g *updateGraph) offload() (err error) {
	if g.file == "" {
		return nil
	}
	f, err := os.OpenFile(g.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, s := range g.params[0].states {
		if _, err := f.Write(s.Data); err != nil {
			return err
		}
		s.Data = nil
	}
	return nil
}

// eachParameter calls f for each parameter with its states in memory.
func (u *accumulatedUpdate) eachParameter(f func(p *parameter) error) error {
	for _, g := range u.graphs {
		if err := g.fetch(); err != nil {
			return err
		}
		for _, p := range g.params {
			if err := f(p); err != nil {
				return err
			}
		}
		if err := g.offload(); err != nil {
			return err
		}
	}
	return nil
}

func (u *accumulatedUpdate) close() error {
	var errs []error
	for _, g := range u.inOrder() {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}
