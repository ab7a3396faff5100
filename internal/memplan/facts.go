package memplan

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/inspect"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Options say which runs are looked at.
type Options struct {
	Workers int
	Batches []int64          // sizes of open batch axes; one run of 1 if empty
	Dims    map[string]int64 // sizes of open axes by their names
	Budget  int64            // bytes that the largest batch is looked for; 0 for none
	Layout  bool             // count what channels last would change
	Measure bool             // run the model once, and see what it took
	Plain   bool             // without fusions: each node runs as it stands

	keep bool // no value is fused away
}

// Facts are the memory of a model. Their fields stand in the order of the JSON form. All
// sizes are bytes.
type Facts struct {
	Weights   Weights  `json:"weights"`             // as the model stores them
	Held      *Weights `json:"held,omitempty"`      // as a run needs them: folded, converted, without those that nobody reads
	Unplanned string   `json:"unplanned,omitempty"` // why there is nothing but weights
	Workers   int      `json:"workers"`             // scratch depends on them
	Fixed     bool     `json:"batch_fixed"`         // the model declares its batch
	Runs      []*Run   `json:"runs"`
	Budget    *Budget  `json:"budget,omitempty"`
	Layout    *Layout  `json:"layout,omitempty"`
	Measured  *Taken   `json:"measured,omitempty"` // of the last run
}

// Weights are constants by element type.
type Weights struct {
	Tensors int             `json:"tensors"`
	Bytes   int64           `json:"bytes"`
	DTypes  []inspect.DType `json:"dtypes"`

	specs []ir.Spec
}

// Model plans the memory of f. No weight is read, but for small ones, which shapes may follow
// from, unless o.Measure asks for a run. A model that cannot be planned, because of an operator
// that the engine does not run or inputs without types, has facts about its weights only.
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

// runs plans one run for each batch. Where the model declares its batch there is one.
func (f *Facts) runs(p *planner, o Options) error {
	batches := o.Batches
	if len(batches) == 0 || p.fixed {
		batches = []int64{1}
	}
	for _, n := range batches {
		r, err := p.run(n)
		if err != nil {
			return p.about(n, err)
		}
		f.Runs = append(f.Runs, r)
	}
	return nil
}

// about says which batch an error is about.
func (p *planner) about(batch int64, err error) error {
	if p.fixed {
		return err
	}
	return fmt.Errorf("batch %d: %w", batch, err)
}
