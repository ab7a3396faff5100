package memplan

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// measure runs m as r was planned.
func (p *planner) measure(ctx context.Context, m *ir.Model, o Options, r *memoryplan.Run,
) (*memoryplan.Measured, error) {
	in, err := p.randomInputs(ctx, r.Batch)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, m, engine.Options{Workers: o.Workers, Limits: o.Limits, NoFusion: o.Plain})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	got, err := e.Measure(ctx, in)
	if err != nil {
		return nil, err
	}
	t := &memoryplan.Measured{
		Batch: r.Batch, Written: got.Written, Peak: got.Peak, AtStep: got.At, Heap: got.Heap, Outputs: got.Outputs,
		Arena: (got.Arena + memory.Align - 1) / memory.Align * memory.Align, // arenas end at a multiple
	}
	if got.At < len(r.Steps) {
		t.AtNode = r.Steps[got.At].Node
	}
	t.Weights, _ = e.Weights()
	t.Exact = t.Arena == r.Arena && t.Peak == r.Peak
	return t, nil
}

// randomInputs are the inputs of one run.
func (p *planner) randomInputs(ctx context.Context, batch int64) (map[string]*ir.Array, error) {
	set, err := dataset.Generate(p.inputs, p.random(batch))
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(ctx, dataset.Order{Size: 1}) {
		if err != nil {
			return nil, err
		}
		return b.Inputs, nil
	}
	return nil, errors.New("no inputs were generated")
}
