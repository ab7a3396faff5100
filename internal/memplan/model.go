package memplan

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// Options select the runs.
type Options struct {
	Workers int
	Batches []int64          // sizes of dynamic batch axes; one run of 1 if empty
	Dims    map[string]int64 // sizes of dynamic axes by name
	Limits  memory.Limits    // of the run that is measured
	Budget  int64            // bytes for the largest batch; 0 for none
	Layout  bool             // count the changes by channels last
	Measure bool             // run the model once and measure its memory
	Plain   bool             // without fusions
}

// Planned is the memory plan of a model, and the buffers of its last run.
type Planned struct {
	*memoryplan.Plan
	constants []ir.Spec // those that Held sums up
	last      *plannedRun
}

// Model plans the memory of f. Only small constants, which shapes may depend on, are read,
// unless o.Measure is set. A model that cannot be planned, because of an unsupported operator
// or inputs without types, has a plan of its weights only.
func Model(ctx context.Context, f *onnx.File, o Options) (*Planned, error) {
	planned := &Planned{Plan: &memoryplan.Plan{
		Weights: storedWeights(f.Model), Workers: max(o.Workers, 1), Runs: []*memoryplan.Run{},
	}}
	var err error
	if planned.ORT, err = report.LoadedBytes(ctx, f.Model); err != nil {
		return nil, err
	}
	p, err := open(ctx, f.Model, o)
	var missing *engine.Unsupported
	var untyped *untypedError
	if errors.As(err, &missing) || errors.As(err, &untyped) {
		planned.Unplanned = err.Error()
		return planned, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	planned.Held, planned.Fixed, planned.constants = &p.weights, p.fixed, p.engine.Constants()
	if err := planned.runs(p, o); err != nil {
		return nil, err
	}
	if o.Budget > 0 {
		if planned.Budget, err = p.largest(o.Budget); err != nil {
			return nil, err
		}
	}
	if o.Layout {
		if planned.Layout, err = channelsLast(ctx, f.Model, planned.last.in); err != nil {
			return nil, err
		}
	}
	if o.Measure {
		planned.Measured, err = p.measure(ctx, f.Model, o, planned.last.Run)
	}
	return planned, err
}

// runs plans one run for each batch; a model with a static batch has one.
func (planned *Planned) runs(p *planner, o Options) error {
	batches := o.Batches
	if len(batches) == 0 || p.fixed {
		batches = []int64{1}
	}
	for _, n := range batches {
		r, err := p.planRun(n)
		if err != nil {
			return p.withBatch(n, err)
		}
		planned.Runs, planned.last = append(planned.Runs, r.Run), r
	}
	return nil
}

// withBatch adds the batch to an error.
func (p *planner) withBatch(batch int64, err error) error {
	if p.fixed {
		return err
	}
	return fmt.Errorf("batch %d: %w", batch, err)
}
