package calibrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
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
// weights, up to a part of c.Memory, and what one run takes. NaN in the samples, or in one of the values, is an error.
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
			return fmt.Errorf("calibration: sample %d: %w", b.First, err)
		}
	}
	return nil
}

func (d *Data) noteMadeUp(c *pass.Context) {
	if d.Path == "" {
		c.Note("", "calibrated on made-up inputs: give --data for those of the model's purpose")
	}
}

// noNaN is an error where there are some in the inputs of a run.
func noNaN(inputs map[string]*ir.Array) error {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if hasNaN(inputs[name]) {
			return fmt.Errorf("input %q: it holds NaN", name)
		}
	}
	return nil
}

// run is one run.
func (d *Data) run(ctx context.Context, s *engine.Interpreter, b *dataset.Batch, names []string, visit Visit) error {
	if err := noNaN(b.Inputs); err != nil {
		return err
	}
	return s.Watch(ctx, b.Inputs, names, func(name string, a *ir.Array) error {
		if !d.Lenient && hasNaN(a) {
			return fmt.Errorf("value %q: it holds NaN", name)
		}
		return visit(name, a)
	})
}

func hasNaN(a *ir.Array) bool {
	if a.Kind != ir.Dense || a.DType != ir.Float {
		return false
	}
	return kernel.AbsMaxBits(ir.View[float32](a)) > math.Float32bits(float32(math.Inf(1)))
}

// set opens the samples, or makes some up.
func (d *Data) set(c *pass.Context, m *ir.Model) (*dataset.Set, error) {
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

// batches are those of order, without what fills them up.
func (d *Data) batches(ctx context.Context, m *ir.Model, set *dataset.Set) iter.Seq2[*dataset.Batch, error] {
	return func(yield func(*dataset.Batch, error) bool) {
		for b, err := range set.Batches(ctx, d.order(set)) {
			if err == nil {
				b.Inputs = unpadded(m.Graph, b.Inputs)
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
