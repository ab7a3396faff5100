package job

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/memory"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/verify"
)

// A cost is what running two models takes, as planned before a weight is read.
type cost struct {
	weights       int64 // bytes of the first model's
	made          int64 // bytes of all that its nodes make
	before, after int64 // most bytes of activations alive at once, of each model
	known         bool  // all but the weights are
}

// cost plans a run of both models on the first sample. That a plan cannot be made is no error:
// running will tell.
func (v Verification) cost(ctx context.Context, a, b *onnx.File) (cost, error) {
	c := cost{weights: weightBytes(a.Model)}
	if !v.Backend.Embedded() {
		return c, nil
	}
	specs, err := v.first(ctx, a.Model)
	if err != nil || specs == nil {
		return c, err
	}
	for _, side := range []struct {
		name  string
		model *ir.Model
		peak  *int64
	}{{verify.Second, b.Model, &c.after}, {verify.First, a.Model, &c.before}} {
		peak, made, err := activations(ctx, side.model, specs)
		var missing *engine.Missing
		if errors.As(err, &missing) {
			return c, &verify.SideError{Side: side.name, Err: err}
		}
		if err != nil {
			return cost{weights: c.weights}, nil
		}
		*side.peak, c.made = peak, made
	}
	c.known = true
	return c, nil
}

// first are the types of the first sample's inputs, nil if one is no tensor.
func (v Verification) first(ctx context.Context, m *ir.Model) (map[string]ir.Spec, error) {
	set, err := v.opens(m, 1)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	specs := map[string]ir.Spec{}
	for batch, err := range set.Batches(ctx, dataset.Order{Size: v.Data.Batch}) {
		if err != nil {
			return nil, err
		}
		for name, a := range batch.Inputs {
			if a.Kind != ir.Dense {
				return nil, nil
			}
			specs[name] = a.Spec()
		}
		break
	}
	return specs, nil
}

// activations is the most bytes of activations that are alive at a step of a run, and the bytes of all
// that its nodes make. Scratch, which depends on the number of workers, is none of them.
func activations(ctx context.Context, m *ir.Model, in map[string]ir.Spec) (peak, made int64, err error) {
	e, err := engine.Open(ctx, m, engine.Options{Workers: 1, PlanOnly: true})
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	u, err := e.Usage(in)
	if err != nil {
		return 0, 0, err
	}
	line, err := memory.NewTimeline(u.Plan.Blocks, len(u.Steps))
	if err != nil {
		return 0, 0, err
	}
	for _, alive := range line.Alive {
		peak = max(peak, alive[memory.Activation])
	}
	for _, step := range u.Steps {
		for _, out := range step.Out {
			made += out.Bytes()
		}
	}
	return peak, made, nil
}
