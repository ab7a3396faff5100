package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Data selects the samples that a model is run on.
type Data struct {
	Path string // path for dataset.Open; empty for random inputs
	// training or calibration data: the classes of both are numbered together; nil for classes of its own
	Classes *Data
	Options dataset.Options // of data sets; Fill and Dims also of random inputs
	Seed    uint64          // of random inputs
	Samples int             // number of random samples; 0 for a number that costs little time
	Batch   int             // batch size if the batch axis is dynamic; 0 for 1
}

// Generated reports whether the inputs are random.
func (d Data) Generated() bool { return d.Path == "" }

// Open opens the data for m, or generates the given number of random samples: integers are within the range of the
// tables that they index.
func (d Data) Open(m *ir.Model, samples int) (*dataset.Set, error) {
	inputs := dataset.Inputs(m.Graph)
	if d.Generated() {
		return dataset.Generate(inputs, d.random(m, samples))
	}
	o := d.Options
	var err error
	if o.Classes, _, err = d.classes(); err != nil {
		return nil, err
	}
	return dataset.Open(d.Path, inputs, dataset.Outputs(m.Graph), o)
}

// data is the samples with labels as the metric reads them.
func (v Verification) data() Data {
	d := v.Data
	d.Options.Verbatim = v.Metric != nil && v.Metric.Verbatim()
	return d
}

// classes are the names of the classes in the order of their numbers, nil for those of the data itself. added
// reports whether some are not in the training data.
func (d Data) classes() (names []string, added bool, err error) {
	if d.Classes == nil || d.Options.Classes != nil {
		return d.Options.Classes, false, nil
	}
	training, err := dataset.ClassNames(d.Classes.Path, d.Classes.Options)
	if err != nil || training == nil {
		return nil, false, err
	}
	test, err := dataset.ClassNames(d.Path, d.Options)
	if err != nil {
		return nil, false, err
	}
	if len(training) > 0 && test != nil && len(test) == 0 {
		return nil, false, fmt.Errorf("%s: the labels are numbers, but those of the training or calibration data, %s, "+
			"are words; if they are the numbers of these classes, give --classes %s", d.Path, d.Classes.Path,
			strings.Join(training, ","))
	}
	union := dataset.UnionOfClasses(training, test)
	return union, len(union) > len(training), nil
}

// numberClasses numbers the classes of the training data and of the test data together, in the options of
// verification and of the steps, whose recipe has them where they do not follow from the training data.
func (o *Options) numberClasses() error {
	if o.Verify == nil || o.Verify.Data.Classes == nil {
		return nil
	}
	v := *o.Verify
	names, added, err := v.Data.classes()
	if err != nil {
		return err
	}
	if added {
		if i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, ",") }); i >= 0 {
			return fmt.Errorf("%s has classes that %s lacks, and the class %q has a comma in its name; rename it", v.Data.Path,
				v.Data.Classes.Path, names[i])
		}
		// The caller's steps, and the verification below, are shared with the runs of other models.
		o.Steps = slices.Clone(o.Steps)
		for i, s := range o.Steps {
			of := func(option pass.Option) bool { return option.Name == "data" && option.Value == v.Data.Classes.Path }
			if !slices.ContainsFunc(pass.Values(s), of) {
				continue
			}
			if o.Steps[i], err = pass.With(s, "classes", strings.Join(names, ",")); err != nil {
				return err
			}
		}
	}
	v.Data.Options.Classes, v.Data.Classes = names, nil
	o.Verify = &v
	return nil
}

func (d Data) random(m *ir.Model, samples int) dataset.Random {
	return dataset.Random{
		Seed: d.Seed, Samples: samples, Batch: int64(d.Batch), Dims: d.Options.Dims, Fill: d.Options.Fill,
		Ranges: dataset.Ranges(m), Carry: d.Options.Carry, Workers: d.Options.Workers, Memory: d.Options.Memory,
	}
}

// firstSpecs returns the types of the inputs of the first run, nil if one is not a tensor. It generates no values.
func (d Data) firstSpecs(ctx context.Context, m *ir.Model) (map[string]ir.Spec, error) {
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
