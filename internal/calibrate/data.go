package calibrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Data is the options of a method that looks at values inside the graph: which samples it runs the model on.
type Data struct {
	dataset.Source
	Lenient bool // NaN inside the graph is shown too, and no error
	most    int
}

// Bind declares the options; most is how many samples are taken if nothing else is said.
func (d *Data) Bind(fs *flag.FlagSet, most int) {
	d.Source.Bind(fs)
	fs.IntVar(&d.most, "calibrate", most, "`number` of samples that are looked at, spread over all there are; 0 for all")
}

// madeUp is how many samples are made up where there is no data.
const madeUp = 8

// A Visit looks at a value of one run. The array is valid until it returns; what it changes in it, the run goes on with.
type Visit func(name string, a *ir.Array) error

// Each runs m, mostly c.Model or c.Source, over the samples one batch after another, and hands visit each of the named
// values of the main graph at the moment it is made: inputs, outputs or what lies between. Order and bits of what it sees
// do not depend on the number of workers. Without data the samples are made up, which a row of the ledger says. It holds m's
// weights, up to a part of c.Memory, and what one run takes. What is no number in the samples is an error, as is NaN in one of the values.
func (d *Data) Each(c *pass.Context, m *ir.Model, names []string, visit Visit) error {
	set, err := d.set(c, m)
	if err != nil {
		return err
	}
	defer set.Close()
	d.noteMadeUp(c)
	s, err := engine.Open(c, m, engine.Options{Workers: c.Workers, MemoryLimit: c.Memory, Keep: names})
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	defer s.Close()
	for b, err := range d.batches(c, m, set) {
		if err != nil {
			return err
		}
		if err := d.run(c, s, b, names, visit); err != nil {
			return d.failed(b, err)
		}
	}
	return nil
}

func (d *Data) noteMadeUp(c *pass.Context) {
	if d.Path == "" {
		c.Note("", "calibrated on made-up inputs: give --data for those of the model's purpose")
	}
}

// finite is an error where an input of a run has elements that are no numbers.
func finite(inputs map[string]*ir.Array) error {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if bits := largest(inputs[name]); bits >= infinity {
			what := "infinities"
			if bits > infinity {
				what = "NaN"
			}
			return fmt.Errorf("input %q holds %s: mend the sample, or leave it out", name, what)
		}
	}
	return nil
}

// run is one run.
func (d *Data) run(ctx context.Context, s *engine.Interpreter, b *dataset.Batch, names []string, visit Visit) error {
	if err := finite(b.Inputs); err != nil {
		return err
	}
	return s.Watch(ctx, b.Inputs, names, func(name string, a *ir.Array) error {
		if !d.Lenient && largest(a) > infinity {
			return fmt.Errorf("value %q: the model makes NaN of it", name)
		}
		return visit(name, a)
	})
}

// infinity is the bits of a float32.
const infinity = 0x7f800000

// largest is the bits of the largest magnitude of floats, more than infinity for NaN; 0 for all else.
func largest(a *ir.Array) uint32 {
	if a.Kind != ir.Dense || a.DType != ir.Float {
		return 0
	}
	return kernel.AbsMaxBits(ir.View[float32](a))
}

// failed is what is wrong with a run, with its data and the number of its sample.
func (d *Data) failed(b *dataset.Batch, err error) error {
	if d.Path == "" {
		return fmt.Errorf("calibration: made-up sample %d: %w", b.First, err)
	}
	return fmt.Errorf("calibration: %s: sample %d: %w", d.Path, b.First, err)
}

// set opens the samples, or makes some up.
func (d *Data) set(c *pass.Context, m *ir.Model) (*dataset.Set, error) {
	if d.most < 0 {
		return nil, pass.OptionErrorf("--calibrate %d: it takes a number of samples, or 0 for all", d.most)
	}
	if d.Path == "" {
		return d.MakeUp(m, madeUp, c.Workers)
	}
	set, err := d.Open(m, dataset.Inputs(m.Graph), c.Workers)
	if err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nil, errors.Join(fmt.Errorf("%s: it holds no sample that the model can run on", d.Path), set.Close())
	}
	return set, nil
}

// batches are those of order, without what fills them up, each with the number of its first sample in the data.
func (d *Data) batches(ctx context.Context, m *ir.Model, set *dataset.Set) iter.Seq2[*dataset.Batch, error] {
	return func(yield func(*dataset.Batch, error) bool) {
		order := d.order(set)
		for b, err := range set.Batches(ctx, order) {
			if err == nil {
				b.Inputs = unpadded(m.Graph, b.Inputs)
			}
			if err == nil && order.Index != nil {
				b.First = order.Index[b.First]
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// order takes up to d.most samples, in whole batches of the size that the model wants, as far apart as can be.
func (d *Data) order(set *dataset.Set) dataset.Order {
	size := set.Size(1)
	all, most := set.Len()/size, d.most/size
	if d.most <= 0 || all <= max(1, most) {
		return dataset.Order{}
	}
	var index []int
	for i := range max(1, most) {
		first := i * all / max(1, most) * size
		for k := range size {
			index = append(index, first+k)
		}
	}
	return dataset.Order{Index: index}
}
