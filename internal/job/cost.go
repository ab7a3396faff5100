package job

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A cost is what running two models takes, as planned before a weight is read.
type cost struct {
	weights       int64 // bytes of the first model's
	made          int64 // bytes of all that its nodes make
	before, after int64 // most bytes of activations alive at once, of each model
	arena         int64 // bytes that a run takes beside weights, of the model that takes more
	known         bool  // all but the weights are
}

// cost plans a run of both models on the first sample. That a plan cannot be made is no error:
// running will tell.
func (v Verification) cost(ctx context.Context, a, b *onnx.File) (cost, error) {
	c := cost{weights: weightBytes(a.Model)}
	if !v.Backend.Embedded() {
		return c, nil
	}
	specs, err := v.Data.first(ctx, a.Model)
	if err != nil || specs == nil {
		return c, v.unopened(err)
	}
	before, errBefore := v.plan(ctx, a.Model, specs)
	after, errAfter := v.plan(ctx, b.Model, specs)
	var missing *engine.Unsupported
	switch {
	case errors.As(errBefore, &missing):
		return c, &verify.SideError{Side: verify.First, Err: errBefore}
	case errors.As(errAfter, &missing):
		return c, &verify.SideError{Side: verify.Second, Err: errAfter}
	case errBefore != nil || errAfter != nil:
		return c, nil
	}
	return cost{
		weights: c.weights, made: before.made, before: before.peak, after: after.peak,
		arena: max(before.arena, after.arena), known: true,
	}, nil
}

// A plan is what a run of one model takes.
type plan struct {
	peak  int64 // most bytes of activations alive at once
	made  int64 // bytes of all that its nodes make
	arena int64
}

// plan plans a run with one worker: scratch depends on their number, and what is reported must not.
func (v Verification) plan(ctx context.Context, m *ir.Model, in map[string]ir.Spec) (p plan, err error) {
	defer bugs(&err)
	e, err := engine.Open(ctx, m, engine.Options{Workers: 1, MemoryLimit: v.Backend.Memory, PlanOnly: true})
	if err != nil {
		return p, err
	}
	defer e.Close()
	u, err := e.Usage(in)
	if err != nil {
		return p, err
	}
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		return p, err
	}
	for _, alive := range line.Live {
		p.peak = max(p.peak, alive[memory.Activation])
		p.arena = max(p.arena, alive.Total()-alive[memory.Weight])
	}
	for _, step := range u.Steps {
		for _, out := range step.Out {
			p.made += out.Bytes()
		}
	}
	return p, nil
}
