package distill

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// microBatches supplies the micro-batches of training steps.
type microBatches struct {
	loader    *loader
	augmenter *augmenter // nil without --augment
	layout    *layout
	classes   int64 // of random labels, in trials without data; 0 if no loss uses labels
}

// stepsPerEpoch is the number of steps for one pass over all samples.
func (d *microBatches) stepsPerEpoch() int { return len(d.loader.training) / d.layout.batch }

// epoch returns the samples of an epoch in their order: those of all steps.
func (d *microBatches) epoch(epoch int) []int {
	order := shuffled(len(d.loader.training), *d.loader.settings.Seed, epoch)
	samples := make([]int, 0, len(order))
	// Whole batches only: the shapes of a step are fixed. The samples that are left out differ between epochs.
	for _, i := range order[:d.stepsPerEpoch()*d.layout.batch] {
		samples = append(samples, d.loader.training[i])
	}
	return samples
}

// shuffled returns the order of n training samples in an epoch.
func shuffled(n int, seed uint64, epoch int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}

// ofTrial returns the samples of n steps of a trial. All trials have the same ones.
func (d *microBatches) ofTrial(n int) []int {
	order := shuffled(len(d.loader.training), *d.loader.settings.Seed, trialEpoch)
	samples := make([]int, n*d.layout.batch)
	for i := range samples {
		// Repeated if there are fewer: a trial of a small data set has as many steps as any other.
		samples[i] = d.loader.training[order[i%len(order)]]
	}
	return samples
}

// each iterates over micro-batches of samples, of which a step is the first; in trials without data over a random one
// as often.
func (d *microBatches) each(ctx context.Context, samples []int, step int) iter.Seq2[*dataset.Batch, error] {
	n, s := d.layout.microBatch(), d.loader.settings
	if d.loader.set != nil {
		return d.loader.batches(ctx, samples, n, d.augmenter.from(step, d.layout.batch))
	}
	return func(yield func(*dataset.Batch, error) bool) {
		// One batch for all steps: trials without data measure time and memory, and not what is learned.
		b, err := d.randomBatch(ctx, n)
		if err == nil {
			s.Recorder.Samples(b.Bytes)
		}
		for i := 0; i < len(samples); i += n {
			if err != nil {
				yield(nil, err)
				return
			}
			b.N, b.First = n, i
			if !yield(b, nil) {
				return
			}
		}
	}
}

// randomBatch returns random inputs of n samples and random classes.
func (d *microBatches) randomBatch(ctx context.Context, n int) (*dataset.Batch, error) {
	s := d.loader.settings
	o, err := (&dataset.Source{Samples: s.Samples}).Options(serial)
	if err != nil {
		return nil, err
	}
	set, err := dataset.Generate(d.loader.inputs, dataset.Random{
		Seed: *s.Seed, Batch: int64(n), Dims: o.Dims, Fill: o.Fill, Ranges: dataset.Ranges(d.loader.model), Workers: serial,
	})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(ctx, dataset.Order{Size: 1}) {
		if err != nil {
			return nil, err
		}
		b.Labels = d.randomClasses(n)
		return b, nil
	}
	return nil, errors.New("no inputs were generated")
}

// randomClasses returns random labels of n samples; nil if no loss uses labels.
func (d *microBatches) randomClasses(n int) *ir.Array {
	if d.classes == 0 {
		return nil
	}
	r, classes := rand.New(rand.NewPCG(*d.loader.settings.Seed, 0)), make([]int64, n)
	for i := range classes {
		classes[i] = r.Int64N(d.classes)
	}
	return ir.ArrayOf(classes, int64(n))
}

// commonClasses is the number of classes that the outputs of all losses with labels have; 0 if no loss uses labels.
func commonClasses(terms []term, tape *grad.Tape) int64 {
	count := int64(math.MaxInt64)
	for _, l := range terms {
		if l.soft == nil {
			count = min(count, max(1, l.classes(tape.Shape(tape.Value(l.student)))))
		}
	}
	if count == math.MaxInt64 {
		return 0
	}
	return count
}
