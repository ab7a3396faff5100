package memplan

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// A planner plans runs of one model.
type planner struct {
	engine  *engine.Interpreter
	inputs  []dataset.Input
	dims    map[string]int64
	weights memoryplan.Weights
	fixed   bool // the batch axis is static
}

// open makes a planner for m without reading its weights.
func open(ctx context.Context, m *ir.Model, o Options) (*planner, error) {
	p := &planner{inputs: dataset.Inputs(m.Graph), dims: o.Dims}
	if err := p.checkTypes(); err != nil {
		return nil, err
	}
	// The batch is dynamic if the shape of any input follows it.
	one, err := p.types(1)
	if err != nil {
		return nil, err
	}
	two, err := p.types(2)
	if err != nil {
		return nil, err
	}
	p.fixed = slices.EqualFunc(one, two, func(a, b ir.Spec) bool { return slices.Equal(a.Shape, b.Shape) })
	p.engine, err = engine.Open(ctx, m, engine.Options{Workers: o.Workers, NoFusion: o.Plain, PlanOnly: true})
	if err != nil {
		return nil, err
	}
	p.weights = sumByType(p.engine.Constants())
	return p, nil
}

func (p *planner) close() { _ = p.engine.Close() } // nothing was written that could be lost

// An untypedError is about an input without a type.
type untypedError struct{ input, lacks string }

func (e *untypedError) Error() string {
	return fmt.Sprintf("input %q: %s: its memory cannot be planned", e.input, e.lacks)
}

// checkTypes finds inputs without a type.
func (p *planner) checkTypes() error {
	for _, in := range p.inputs {
		switch {
		case in.Kind != onnx.TensorValue:
			return &untypedError{in.Name, "not a tensor"}
		case in.Type == nil || !in.Type.Elem.Known():
			return &untypedError{in.Name, "its element type is not declared"}
		case in.Type.Shape == nil:
			return &untypedError{in.Name, "its rank is not declared"}
		}
	}
	return nil
}

// types are those of the inputs of a run.
func (p *planner) types(batch int64) ([]ir.Spec, error) {
	specs, err := dataset.Specs(p.inputs, p.random(batch))
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		if err := s.Valid(); err != nil {
			return nil, fmt.Errorf("input %q: %w", s.Name, err)
		}
	}
	return specs, nil
}

// random are the options of random inputs.
func (p *planner) random(batch int64) dataset.Random {
	return dataset.Random{Batch: batch, Dims: p.dims}
}
