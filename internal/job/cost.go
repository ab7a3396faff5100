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

// A cost is the memory and compute cost of running two models, planned before weights are read.
type cost struct {
	weights       int64 // bytes of the first model's weights
	computed      int64 // bytes of the outputs of all its nodes
	before, after int64 // peak bytes of live activations of each model
	arena         int64 // peak bytes of a run without weights, the maximum of both models
	known         bool  // whether the fields other than weights are
}

// cost plans a run of both models on the first sample. A failure to plan is not an error: running the models
// will report it.
func (v Verification) cost(ctx context.Context, a, b *onnx.File) (cost, error) {
	c := cost{weights: weightBytes(a.Model)}
	if !v.Backend.Embedded() {
		return c, nil
	}
	specs, err := v.data().firstSpecs(ctx, v.sampleModel(a, b))
	if err != nil || specs == nil {
		// Inputs that are not tensors have no size before they are read: the cost remains unknown.
		return c, v.inputError(err)
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
		weights: c.weights, computed: before.computed, before: before.peak, after: after.peak,
		arena: max(before.arena, after.arena), known: true,
	}, nil
}

// A plan is the cost of running one model.
type plan struct {
	peak     int64 // peak bytes of live activations
	computed int64 // bytes of the outputs of all its nodes
	arena    int64

	constants int64 // bytes of weights
	outputs   int64
}

// plan plans a run with one worker: scratch memory depends on the number of workers, reported figures must not.
func (v Verification) plan(ctx context.Context, m *ir.Model, in map[string]ir.Spec) (plan, error) {
	return v.planWith(ctx, m, in, engine.Options{Workers: 1})
}

// planWith plans a run with other options.
func (v Verification) planWith(ctx context.Context, m *ir.Model, in map[string]ir.Spec,
	o engine.Options) (p plan, err error) {
	defer recoverBug(&err)
	o.Limits, o.PlanOnly = v.Backend.Limits, true
	e, err := engine.Open(ctx, m, o)
	if err != nil {
		return p, err
	}
	defer e.Close()
	u, err := e.Usage(in)
	if err != nil {
		return p, err
	}
	p.constants, p.outputs = e.ConstantBytes(), u.Outputs
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		return p, err
	}
	for _, live := range line.Live {
		p.peak = max(p.peak, live[memory.Activation])
		p.arena = max(p.arena, live.Total()-live[memory.Weight])
	}
	for _, step := range u.Steps {
		for _, out := range step.Out {
			p.computed += out.Bytes()
		}
	}
	return p, nil
}
