package job

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// Data says what samples a model is run on.
type Data struct {
	Path    string          // as dataset.Open takes it; empty to make inputs up
	Options dataset.Options // for what is read; Fill and Dims for what is made up, too
	Seed    uint64          // of what is made up
	Samples int             // how many are made up; 0 for as many as cost little
	Batch   int             // samples in a run, where the model leaves that open; 0 for 1
}

// Generated reports whether the inputs are made up.
func (d Data) Generated() bool { return d.Path == "" }

// Open opens the data for m, or makes so many samples up: integers within the tables that they
// are looked up in.
func (d Data) Open(m *ir.Model, samples int) (*dataset.Set, error) {
	inputs := dataset.Inputs(m.Graph)
	if d.Generated() {
		return dataset.Generate(inputs, d.random(m, samples))
	}
	return dataset.Open(d.Path, inputs, dataset.Outputs(m.Graph), d.Options)
}

func (d Data) random(m *ir.Model, samples int) dataset.Random {
	return dataset.Random{
		Seed: d.Seed, Samples: samples, Batch: int64(d.Batch), Dims: d.Options.Dims, Fill: d.Options.Fill,
		Ranges: dataset.Ranges(m), Workers: d.Options.Workers, Memory: d.Options.Memory,
	}
}

// first are the types of what the first run is fed, nil if one is no tensor. Nothing is made up for that.
func (d Data) first(ctx context.Context, m *ir.Model) (map[string]ir.Spec, error) {
	specs := map[string]ir.Spec{}
	if d.Generated() {
		list, err := dataset.Specs(dataset.Inputs(m.Graph), d.random(m, 1))
		for _, s := range list {
			specs[s.Name] = s
		}
		return specs, err
	}
	set, err := d.Open(m, 0)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for batch, err := range set.Batches(ctx, dataset.Order{Size: d.Batch}) {
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
