package job

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// Data selects the samples that a model is run on.
type Data struct {
	Path    string          // path for dataset.Open; empty for random inputs
	Classes *Data           // training or calibration data whose classes number the labels; nil for classes of its own
	Options dataset.Options // of data sets; Fill and Dims also of random inputs
	Seed    uint64          // of random inputs
	Samples int             // number of random samples; 0 for a number that costs little time
	Batch   int             // batch size if the batch axis is dynamic; 0 for 1
}

// Generated reports whether the inputs are random.
func (d Data) Generated() bool { return d.Path == "" }

// Open opens the data for m, or generates the given number of random samples: integers are within the range of the tables
// that they index.
func (d Data) Open(m *ir.Model, samples int) (*dataset.Set, error) {
	inputs := dataset.Inputs(m.Graph)
	if d.Generated() {
		return dataset.Generate(inputs, d.random(m, samples))
	}
	o := d.Options
	if d.Classes != nil {
		var err error
		if o.Classes, err = dataset.ClassNames(d.Classes.Path, d.Classes.Options); err != nil {
			return nil, err
		}
	}
	return dataset.Open(d.Path, inputs, dataset.Outputs(m.Graph), o)
}

func (d Data) random(m *ir.Model, samples int) dataset.Random {
	return dataset.Random{
		Seed: d.Seed, Samples: samples, Batch: int64(d.Batch), Dims: d.Options.Dims, Fill: d.Options.Fill,
		Ranges: dataset.Ranges(m), Carry: d.Options.Carry, Workers: d.Options.Workers, Memory: d.Options.Memory,
	}
}

// first returns the types of the inputs of the first run, nil if one is not a tensor. It generates no values.
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
