package memplan

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/inspection"
)

// Options select the runs.
type Options struct {
	Workers int
	Batches []int64          // sizes of dynamic batch axes; one run of 1 if empty
	Dims    map[string]int64 // sizes of dynamic axes by name
	Budget  int64            // bytes for the largest batch; 0 for none
	Layout  bool             // count the changes by channels last
	Measure bool             // run the model once and measure its memory
	Plain   bool             // without fusions

	keep bool // without fusions that remove values
}

// Facts are the memory of a model. Their fields are in the order of the JSON form. All
// sizes are bytes.
type Facts struct {
	Weights   Weights   `json:"weights"`             // as the model stores them
	Held      *Weights  `json:"held,omitempty"`      // in a run: after constant folding and dead code elimination
	Unplanned string    `json:"unplanned,omitempty"` // why there are only weights
	Workers   int       `json:"workers"`             // scratch depends on them
	Fixed     bool      `json:"batch_fixed"`         // the batch axis is static
	Runs      []*Run    `json:"runs"`
	Budget    *Budget   `json:"budget,omitempty"`
	Layout    *Layout   `json:"layout,omitempty"`
	Measured  *Measured `json:"measured,omitempty"` // of the last run
}

// Weights are constants by element type.
type Weights struct {
	Tensors int                `json:"tensors"`
	Bytes   int64              `json:"bytes"`
	DTypes  []inspection.DType `json:"dtypes"`

	specs []ir.Spec
}

// Model plans the memory of f. Only small constants, which shapes may depend on, are read,
// unless o.Measure is set. A model that cannot be planned, because of an unsupported operator
// or inputs without types, has facts about its weights only.
func Model(ctx context.Context, f *onnx.File, o Options) (*Facts, error) {
	facts := &Facts{Weights: stored(f.Model), Workers: max(o.Workers, 1), Runs: []*Run{}}
	p, err := open(ctx, f.Model, o)
	var missing *engine.Unsupported
	var untyped *untypedError
	if errors.As(err, &missing) || errors.As(err, &untyped) {
		facts.Unplanned = err.Error()
		return facts, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	facts.Held, facts.Fixed = &p.held, p.fixed
	if err := facts.runs(p, o); err != nil {
		return nil, err
	}
	if o.Budget > 0 {
		if facts.Budget, err = p.largest(o.Budget); err != nil {
			return nil, err
		}
	}
	last := facts.Runs[len(facts.Runs)-1]
	if o.Layout {
		if facts.Layout, err = channelsLast(ctx, f.Model, last.in); err != nil {
			return nil, err
		}
	}
	if o.Measure {
		facts.Measured, err = p.measure(ctx, f.Model, o, last)
	}
	return facts, err
}

// runs plans one run for each batch; a model with a static batch has one.
func (f *Facts) runs(p *planner, o Options) error {
	batches := o.Batches
	if len(batches) == 0 || p.fixed {
		batches = []int64{1}
	}
	for _, n := range batches {
		r, err := p.run(n)
		if err != nil {
			return p.withBatch(n, err)
		}
		f.Runs = append(f.Runs, r)
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
