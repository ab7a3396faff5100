package calibrate

import (
	"context"
	"errors"
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

// Data is the options of a method that needs activations: the calibration samples on which the model runs.
type Data struct {
	dataset.Source
	AllowNaN   bool // NaN in activations is passed on instead of reported as an error
	MaxSamples int  // samples to run on, spread over all of them; 0 for all

	samplesNoted bool
}

// NewData is the data that the options of a method specify.
func NewData(c pass.Calibration, allowNaN bool) Data {
	d := Data{Source: dataset.Source{Samples: c.Samples}, AllowNaN: allowNaN}
	if c.CalibrationSamples != nil {
		d.MaxSamples = *c.CalibrationSamples
	}
	return d
}

// randomSamples is the number of random samples where there is no data.
const randomSamples = 8

// A Visit observes a value of one run. The array is valid until Visit returns; the run continues with what Visit writes
// to it.
type Visit func(name string, a *ir.Array) error

// Each runs m, usually that of the step or its source, on the calibration samples batch by batch and calls visit for
// each of the named values of the main graph as soon as it is computed: inputs, activations or outputs. Order and bits
// of the values are deterministic for any number of workers. Without data the samples are random, which a ledger note
// states. Memory: the weights of m, up to a part of the memory budget, and one run. NaN and infinities in a sample are
// errors, as is NaN in a named value.
func (d *Data) Each(ctx context.Context, step *pass.Step, m *ir.Model, names []string, visit Visit) error {
	set, err := d.set(step, m)
	if err != nil {
		return err
	}
	defer set.Close()
	d.note(step, set)
	s, err := engine.Open(ctx, m, engine.Options{Workers: step.Env.Workers, Limits: step.Env.Limits, Keep: names})
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	defer s.Close()
	for b, err := range d.batches(ctx, step, m, set, true) {
		if err != nil {
			return err
		}
		if err := d.run(ctx, s, b, names, visit); err != nil {
			return d.failed(set, b, err)
		}
	}
	return nil
}

// note records the samples of the first run on them, with a note if they are random.
func (d *Data) note(s *pass.Step, set *dataset.Set) {
	// Several runs of a step on the same data are one entry of the ledger.
	if d.samplesNoted {
		return
	}
	d.samplesNoted = true
	n := set.Len()
	if index := d.order(set).Index; index != nil {
		n = len(index)
	}
	s.Ledger.Used(pass.Data{Use: "calibration", Path: d.Path, Labels: d.Labels, Samples: n})
	if d.Path == "" {
		s.Ledger.Note("", pass.Reason{Code: pass.RandomCalibration})
	}
	for _, text := range set.Notes() {
		s.Ledger.Note("", pass.Reason{Code: pass.ChannelsMoved, Detail: text})
	}
}

// finite reports inputs that hold NaN or infinities.
func finite(inputs map[string]*ir.Array) error {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if bits := largest(inputs[name]); bits >= infinity {
			what := "infinities"
			if bits > infinity {
				what = "NaN"
			}
			return fmt.Errorf("input %q holds %s: correct or remove the sample", name, what)
		}
	}
	return nil
}

// run runs one batch.
func (d *Data) run(ctx context.Context, s *engine.Interpreter, b *dataset.Batch, names []string, visit Visit) error {
	if err := finite(b.Inputs); err != nil {
		return err
	}
	return s.Watch(ctx, b.Inputs, names, func(name string, a *ir.Array) error {
		// NaN alone: infinities are passed on to observers, which have no range for such values and say so.
		if !d.AllowNaN && largest(a) > infinity {
			return fmt.Errorf("value %q: the model computes NaN", name)
		}
		return visit(name, a)
	})
}

// infinity is the bit pattern of the float32 infinity.
const infinity = 0x7f800000

// largest is the bit pattern of the maximum magnitude of a float32 array, above infinity for NaN; 0 for other types.
func largest(a *ir.Array) uint32 {
	if a.Kind != ir.Dense || a.DType != ir.Float {
		return 0
	}
	return kernel.AbsMaxBits(ir.View[float32](a))
}

// Finite reports whether x has neither NaN nor infinities.
func Finite(x []float32) bool { return kernel.AbsMaxBits(x) < infinity }

// failed adds the data's path, the number of the sample and the chosen sizes of axes to an error of a run.
func (d *Data) failed(set *dataset.Set, b *dataset.Batch, err error) error {
	err = set.Explain(err)
	if d.Path == "" {
		return fmt.Errorf("calibration: random sample %d: %w", b.First, err)
	}
	return fmt.Errorf("calibration: %s: sample %d: %w", d.Path, b.First, err)
}

// set opens the samples, or generates random ones.
func (d *Data) set(s *pass.Step, m *ir.Model) (*dataset.Set, error) {
	if d.MaxSamples < 0 {
		return nil, pass.OptionErrorf("--calibrate %d: must be a number of samples, or 0 for all", d.MaxSamples)
	}
	if d.Path == "" {
		return d.Random(m, randomSamples, s.Env.Workers)
	}
	set, err := d.Open(m, dataset.Inputs(m.Graph), s.Env.Workers)
	if err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no sample that the model can run on", d.Path), set.Close())
	}
	return set, nil
}

// batches yields the batches of order without padding, each with the index of its first sample in the data. Where
// outputs are inputs of the next run, m is run for them. With reuse a batch is valid until the next one.
func (d *Data) batches(ctx context.Context, step *pass.Step, m *ir.Model, set *dataset.Set,
	reuse bool) iter.Seq2[*dataset.Batch, error] {
	return func(yield func(*dataset.Batch, error) bool) {
		order := d.order(set)
		carryRunner, err := newCarryRunner(ctx, step, m, set)
		if err != nil {
			yield(nil, fmt.Errorf("calibration: %w", err))
			return
		}
		defer carryRunner.close()
		// A batch that is used after the next one is read needs memory of its own.
		order.Reuse = reuse && carryRunner == nil // which keeps the inputs of the run before
		for b, err := range set.Sequences(ctx, order) {
			if err == nil && carryRunner == nil {
				b.Inputs = unpadded(m.Graph, b.Inputs)
			}
			if err == nil {
				err = carryRunner.next(ctx, b)
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

// order selects up to d.Most samples, in whole batches of the model's batch size, evenly spaced over the data.
func (d *Data) order(set *dataset.Set) dataset.Order {
	size := set.Size(1)
	all, most := set.Len()/size, d.MaxSamples/size
	if d.MaxSamples <= 0 || all <= max(1, most) {
		return dataset.Order{}
	}
	var index []int
	for i := range max(1, most) {
		// Spread evenly, as data is often sorted by class.
		first := i * all / max(1, most) * size
		for k := range size {
			index = append(index, first+k)
		}
	}
	return dataset.Order{Index: index}
}
