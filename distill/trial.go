package distill

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Trial is the result of some steps of training.
type Trial struct {
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"` // of the fastest step
	Loss    float64 `json:"loss"`    // of the last step
	Random  bool    `json:"random"`  // the samples were random
}

// RunTrial trains a step's model for some steps, as FineTune with options o would, and discards the result. Without a learning rate in o it has
// the default of the optimizer. Without data in o it repeats a batch of random inputs, with random classes as labels.
func RunTrial(ctx context.Context, step *pass.Step, o FineTune, steps int) (_ *Trial, err error) {
	o.Steps, o.Time = steps, 0
	t, err := newStepTrainer(step, newFineTuning(o))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	teachers, err := planTeachers(step, t.settings)
	if err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, teachers); err != nil {
		return nil, err
	}
	t.state.init(t.layout.storage == "float16")
	t.settings.resolve(t.stepsPerEpoch())
	t.settings.LR, t.state.Total = cmp.Or(t.settings.LR, t.settings.chosenOptimizer().rate), steps
	r, start := &Trial{Steps: steps, Random: t.loader.set == nil}, startClock()
	return r, t.steps(ctx, chooser{t}.trialSamples(steps), t.hyperparameters, func(of result) error {
		if took := start.seconds(); r.Seconds == 0 || took < r.Seconds {
			r.Seconds = took
		}
		r.Loss, start = of.loss, startClock()
		return t.endStep(of.loss)
	})
}

// A batcher supplies the batches of steps.
type batcher struct{ *trainer }

// batches iterates over micro-batches of samples; in trials without data over a random one as often.
func (t batcher) batches(ctx context.Context, samples []int, change func(*dataset.Batch) error) iter.Seq2[*dataset.Batch, error] {
	n := t.layout.microBatch()
	if t.loader.set != nil {
		return t.loader.batches(ctx, samples, n, change)
	}
	return func(yield func(*dataset.Batch, error) bool) {
		b, err := t.randomBatch(ctx, n)
		if err == nil {
			t.settings.Recorder.Samples(b.Bytes)
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
func (t batcher) randomBatch(ctx context.Context, n int) (*dataset.Batch, error) {
	o, err := (&dataset.Source{Samples: t.settings.Samples}).Options(serial)
	if err != nil {
		return nil, err
	}
	set, err := dataset.Generate(t.loader.inputs, dataset.Random{Seed: *t.settings.Seed, Batch: int64(n), Dims: o.Dims, Fill: o.Fill, Ranges: dataset.Ranges(t.model), Workers: serial})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(ctx, dataset.Order{Size: 1}) {
		if err != nil {
			return nil, err
		}
		b.Labels = t.randomClasses(n)
		return b, nil
	}
	return nil, errors.New("no inputs were generated")
}

// randomClasses returns random labels of n samples; nil if no loss uses labels.
func (t batcher) randomClasses(n int) *ir.Array {
	count := int64(math.MaxInt64) // of classes that all heads have
	for _, l := range t.graphs.terms {
		if l.soft == nil {
			count = min(count, l.classes(t.step.tape.Shape(t.step.tape.Value(l.student))))
		}
	}
	if count == math.MaxInt64 {
		return nil
	}
	r, classes := rand.New(rand.NewPCG(*t.settings.Seed, 0)), make([]int64, n)
	for i := range classes {
		classes[i] = r.Int64N(max(1, count))
	}
	return ir.ArrayOf(classes, int64(n))
}
