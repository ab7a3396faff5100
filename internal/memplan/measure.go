package memplan

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A Taken is the memory that one run took, on made-up inputs.
type Taken struct {
	Batch   int64  `json:"batch"`
	Weights int64  `json:"weights"` // with what operators made of them
	Arena   int64  `json:"arena"`   // that nodes were given
	Written int64  `json:"written"` // bytes of it that nodes wrote: scratch is seldom needed in full
	Peak    int64  `json:"peak"`    // the most bytes of it that, at one step, nodes were given or would still read
	AtStep  int    `json:"peak_step"`
	AtNode  string `json:"peak_node"`
	Heap    int64  `json:"heap"`    // the most bytes of results outside of it, of dynamic nodes, at one step
	Outputs int64  `json:"outputs"` // copied out of it
	Exact   bool   `json:"exact"`   // arena and peak are what was planned, to the byte
}

// measure runs m as r was planned.
func (p *planner) measure(ctx context.Context, m *ir.Model, o Options, r *Run) (*Taken, error) {
	in, err := p.feed(ctx, r.Batch)
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
	t := &Taken{
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

// feed makes up the inputs of one run.
func (p *planner) feed(ctx context.Context, batch int64) (map[string]*ir.Array, error) {
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
	return nil, errors.New("no inputs were made")
}
