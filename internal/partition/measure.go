package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A run of a stage is repeated at least minRuns times and until minTime has passed; the shortest counts.
const (
	minRuns = 3
	minTime = 200 * time.Millisecond
)

// Measure runs the stages of the model at path, of which p is the plan, one after the other on one random batch in this
// process, and sets their Seconds. One stage is in memory at a time.
func (p *Plan) Measure(ctx context.Context, path string, o Options, workers int, limits memory.Limits) error {
	values, err := p.inputs(ctx, path, o)
	if err != nil {
		return err
	}
	for k, s := range p.Stages {
		if err := p.measure(ctx, path, k, values, engine.Options{Workers: workers, Limits: limits}); err != nil {
			return fmt.Errorf("stage %d: %w", k+1, err)
		}
		p.Seconds = max(p.Seconds, s.Seconds)
	}
	return nil
}

// inputs is a random batch.
func (p *Plan) inputs(ctx context.Context, path string, o Options) (_ map[string]*ir.Array, err error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	set, err := dataset.Generate(
		dataset.Inputs(f.Model.Graph),
		dataset.Random{Batch: o.Batch, Dims: o.Dims, Ranges: dataset.Ranges(f.Model)},
	)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	values := map[string]*ir.Array{}
	for b, err := range set.Batches(ctx, dataset.Order{Size: int(max(1, o.Batch))}) {
		if err != nil {
			return nil, err
		}
		for name, a := range b.Inputs {
			values[name] = a.Clone()
		}
		break
	}
	return values, nil
}

// measure runs stage k and adds its outputs to values.
func (p *Plan) measure(
	ctx context.Context,
	path string,
	k int,
	values map[string]*ir.Array,
	o engine.Options,
) (err error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := p.extract(f.Model, k); err != nil {
		return err
	}
	e, err := engine.Open(ctx, f.Model, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	in := map[string]*ir.Array{}
	for _, v := range e.Inputs() {
		in[v.Name] = values[v.Name]
	}
	best, first := math.Inf(1), time.Now()
	// The first run has the memory plan to make, and later ones are disturbed by other processes: the shortest is
	// closest to the work of the stage itself.
	for runs := 0; runs < minRuns || time.Since(first) < minTime; runs++ {
		start := time.Now()
		out, err := e.Run(ctx, in, nil)
		if err != nil {
			return err
		}
		best = min(best, time.Since(start).Seconds())
		for name, a := range out {
			values[name] = a
		}
	}
	p.Stages[k].Seconds = best
	return nil
}
