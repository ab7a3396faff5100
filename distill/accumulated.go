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

// An accumulatedUpdate updates weights by accumulated gradients, in graphs of its own: one for all weights, or one per weight if optimizer
// states are on disk, so that those of one weight at a time are in memory.
type accumulatedUpdate struct {
	norm   *updateGraph // computes hyperparameters with gradient clipping; nil without
	graphs []*updateGraph
	params []*parameter
	arena  int64
}

// An updateGraph is one graph of updates.
type updateGraph struct {
	session             *engine.Interpreter
	feeds               map[string]*ir.Array
	hyper, hyperNoDecay string
	outputs             []string
	params              []*parameter
	file                string // of the states of the only parameter; empty if they are in memory
}

// accumulatedUpdate builds the graphs, if the layout accumulates gradients; nil otherwise.
func (b *graphBuilder) accumulatedUpdate(ctx context.Context, p *layout) (_ *accumulatedUpdate, err error) {
	if !p.accumulates() {
		return nil, nil
	}
	u := &accumulatedUpdate{params: b.params.weights}
	if b.settings.Clip > 0 {
		if u.norm, err = b.normGraph(ctx); err != nil {
			return nil, err
		}
	}
	if !p.offloadOptimizer {
		g, err := b.updateGraph(ctx, b.params.weights)
		u.graphs = []*updateGraph{g}
		return u, errors.Join(err, u.measure())
	}
	for i, w := range b.params.weights {
		g, err := b.updateGraph(ctx, []*parameter{w})
		if err != nil {
			return nil, err
		}
		g.file = filepath.Join(b.folder, fmt.Sprintf("states.%d", i))
		if err := g.offload(); err != nil {
			return nil, err
		}
		u.graphs = append(u.graphs, g)
	}
	return u, u.measure()
}

// updateGraph builds the graph for some parameters.
func (b *graphBuilder) updateGraph(ctx context.Context, params []*parameter) (_ *updateGraph, err error) {
	graph := grad.NewBuilder()
	o := newOptimizerGraph(b.settings, graph)
	g := &updateGraph{feeds: o.feeds, params: params, hyper: o.hyper.Name, hyperNoDecay: o.hyperNoDecay.Name}
	for _, p := range params {
		sum := graph.Input(p.name+".sum", ir.Float, p.array.Shape...)
		o.feeds[sum.Name] = p.gradSum
		o.update(p, o.weight(p), sum)
	}
	graph.Graph().AddOutput(o.squareSum())
	g.outputs = []string{graph.Graph().Outputs[0].Name}
	g.session, err = engine.Open(ctx, graph.Model, b.session())
	return g, err
}

// normGraph builds the graph of gradient clipping.
func (b *graphBuilder) normGraph(ctx context.Context) (_ *updateGraph, err error) {
	graph := grad.NewBuilder()
	o := newOptimizerGraph(b.settings, graph)
	g := &updateGraph{feeds: o.feeds, hyper: o.hyper.Name, hyperNoDecay: o.hyperNoDecay.Name}
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
	g.session, err = engine.Open(ctx, graph.Model, b.session())
	return g, err
}

// measure sets the arena to that of the largest graph, as one graph runs at a time.
func (u *accumulatedUpdate) measure() error {
	for _, g := range append(u.graphs, u.norm) {
		if g == nil || g.session == nil {
			continue
		}
		n, err := arenaOf(g.session)
		if err != nil {
			return err
		}
		u.arena = max(u.arena, n)
	}
	return nil
}

// run updates all weights and clears the accumulated gradients. It returns the sum of the gradients' squares.
func (u *accumulatedUpdate) run(ctx context.Context, h hyperparameters) (total float64, err error) {
	hyper, hyperNoDecay := h.array(h.decay), h.array(0)
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
		total += float64(ir.View[float32](out[g.outputs[0]])[0])
		if err := g.offload(); err != nil {
			return 0, err
		}
	}
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
	if u == nil {
		return nil
	}
	var errs []error
	for _, g := range append(u.graphs, u.norm) {
		if g != nil && g.session != nil {
			errs = append(errs, g.session.Close())
		}
	}
	return errors.Join(errs...)
}
