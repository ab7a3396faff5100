package memplan

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Measured is the memory of one run on random inputs.
type Measured struct {
	Batch   int64  `json:"batch"`
	Weights int64  `json:"weights"` // after prepacking
	Arena   int64  `json:"arena"`   // allocated for nodes
	Written int64  `json:"written"` // bytes of it that nodes wrote: scratch is seldom used in full
	Peak    int64  `json:"peak"`    // maximum of live bytes at a step
	AtStep  int    `json:"peak_step"`
	AtNode  string `json:"peak_node"`
	Heap    int64  `json:"heap"`    // maximum of bytes outside the arena, of dynamic nodes, at a step
	Outputs int64  `json:"outputs"` // copied out of it
	Exact   bool   `json:"exact"`   // arena and peak equal the plan
}

// measure runs m as r was planned.
func (p *planner) measure(ctx context.Context, m *ir.Model, o Options, r *Run) (*Measured, error) {
	in, err := p.randomInputs(ctx, r.Batch)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, m, engine.Options{Workers: o.Workers, NoFusion: o.Plain})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	got, err := e.Measure(ctx, in)
	if err != nil {
		return nil, err
	}
	t := &Measured{
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
