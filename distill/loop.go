package distill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/ir"
)

// stepsPerEpoch is the number of steps for one pass over all samples.
func (t *trainer) stepsPerEpoch() int { return len(t.loader.training) / t.layout.batch }

// train runs the training loop from the current state.
func (t *trainer) train(ctx context.Context) error {
	t.elapsed.start()
	t.state.init(t.layout.storage == "float16")
	clock := startClock()
	first := t.settings.rewind.first(t.stepsPerEpoch())
	if t.state.Step == 0 {
		t.state.Step, t.state.First = first, first
	}
	if err := t.settings.rewind.keepEarly(t); err != nil {
		return err
	}
	if t.state.Step == first && t.settings.Reinit == nil {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	if err := (chooser{t}).schedule(ctx, clock); err != nil {
		return err
	}
	for t.state.Step < t.state.Total && !t.state.stopped(*t.settings.Patience) {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	if err := t.restoreBest(); err != nil {
		return err
	}
	if err := t.checkWeights(); err != nil {
		return err
	}
	t.elapsed.Done = true
	t.notify()
	return nil
}

// epoch runs the remaining steps of the current epoch.
func (t *trainer) epoch(ctx context.Context) error {
	n := t.stepsPerEpoch()
	epoch, done := t.state.Step/n, t.state.Step%n
	order := shuffled(len(t.loader.training), *t.settings.Seed, epoch)
	samples := make([]int, 0, len(order))
	for _, i := range order[done*t.layout.batch : n*t.layout.batch] {
		samples = append(samples, t.loader.training[i])
	}
	if left := (t.state.Total - t.state.Step) * t.layout.batch; left < len(samples) {
		samples = samples[:left]
	}
	if err := t.trainOn(ctx, samples); err != nil {
		return err
	}
	if k := slices.Index(t.state.Counted, 0); k >= 0 {
		return t.step.targets[k].errUncounted(fmt.Sprintf("the samples of %d steps", t.state.Step-t.state.First), "there is nothing to learn from")
	}
	atEnd := t.state.Step%n == 0
	if atEnd || t.state.Step == t.state.Total {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	if err := t.settings.rewind.keepEarly(t); err != nil {
		return err
	}
	if atEnd && t.settings.SaveEvery == 0 || t.state.Step == t.state.Total {
		return t.save()
	}
	return nil
}

// shuffled returns the order of n training samples in an epoch.
func shuffled(n int, seed uint64, epoch int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}

// trainOn runs a training step for every batch of samples.
func (t *trainer) trainOn(ctx context.Context, samples []int) error {
	return t.steps(ctx, samples, t.hyperparameters, func(r result) error {
		if err := t.checkStep(r); err != nil {
			return err
		}
		if err := t.endStep(r.loss); err != nil {
			return err
		}
		if every := t.settings.SaveEvery; every > 0 && t.state.Step%every == 0 || ctx.Err() != nil {
			return t.save()
		}
		return nil
	})
}

// A result is that of a step: its loss, and the sum of the squares of all gradients, at a loss scale. A weight whose gradient is not finite did not change.
type result struct{ loss, squares, lossScale float64 }

// diverges reports whether the step was not finite. Gradients that overflow at a loss scale above 1 are no reason: the next steps have a smaller one.
func (r result) diverges() bool { return !finite(r.loss) || !finite(r.squares) && r.lossScale <= 1 }

// steps updates the weights by every batch of samples, with the hyperparameters of next. It calls done after each step. With --save a step
// that has begun ends, as an interrupted one may have changed weights.
func (t *trainer) steps(interruptible context.Context, samples []int, next func() hyperparameters, done func(result) error) error {
	ctx := interruptible
	if t.settings.Save != "" {
		ctx = context.WithoutCancel(interruptible)
	}
	if t.layout.microBatches > 1 {
		if err := t.counts().read(ctx, samples); err != nil {
			return err
		}
	}
	i, r, total := 0, result{}, []float64(nil) // micro-batch, result and counts of the step
	t.elapsed.iterate(t.loader.stats())
	t.beginStep()
	change := t.augmenter.from(t.state.Step, t.layout.batch)
	for b, err := range (batcher{t}).batches(ctx, samples, change) {
		t.settings.Recorder.Spent(profile.Waiting, t.elapsed.lap(&t.elapsed.Wait))
		if err != nil {
			return err
		}
		h := next()
		h.microBatch = i
		own := t.step.countsOf(b)
		t.state.count(own)
		if t.layout.microBatches > 1 {
			if i == 0 {
				total = t.counter.total(samples[b.First : b.First+t.layout.batch])
			}
			h.shares = shares(own, total)
		}
		of, err := t.microBatch(ctx, b, samples[b.First:b.First+b.N], i, h)
		if err != nil {
			return err
		}
		t.elapsed.lap(&t.elapsed.Compute)
		r.loss, r.squares, r.lossScale = r.loss+of.loss, of.squares, h.lossScale
		if i++; i < t.layout.microBatches {
			continue
		}
		if t.update != nil {
			if r.squares, err = t.update.run(ctx, h); err != nil {
				return err
			}
		}
		t.state.adjustLossScale(r.squares, t.layout.storage == "float16")
		if err := errors.Join(done(r), interruptible.Err()); err != nil {
			return err
		}
		i, r = 0, result{}
		t.beginStep()
	}
	return nil
}

// hyperparameters returns those of the current step.
func (t *trainer) hyperparameters() hyperparameters {
	return t.hyperparametersOf(t.state.Step, t.settings.rateAt(t.state.Step, t.state.Total))
}

// hyperparametersOf returns those of a step, counted from 0, at a learning rate.
func (t *trainer) hyperparametersOf(step int, rate float64) hyperparameters {
	return hyperparameters{rate: rate, decay: *t.settings.WeightDecay, step: step + 1, lossScale: t.state.LossScale}
}

// counts returns what samples count in steps of several micro-batches.
func (t *trainer) counts() *counter {
	if t.counter == nil {
		t.counter = &counter{loader: t.loader, step: t.step, known: map[int][]float64{}}
	}
	return t.counter
}

// microBatch runs micro-batch i of a step. It returns its part of the loss and, if the step updates weights, the squares of the gradients.
func (t *trainer) microBatch(ctx context.Context, b *dataset.Batch, samples []int, i int, h hyperparameters) (r result, err error) {
	if i == 0 {
		if err := t.fakeQuant.quantizeWeights(ctx, t.environment, t.params.weights); err != nil {
			return r, err
		}
	}
	targets, err := t.teachers.targets(ctx, t.step.targets, b, samples)
	if err != nil {
		return r, err
	}
	losses, out, err := t.step.run(ctx, b, targets, h)
	if err != nil {
		return r, err
	}
	for k, loss := range losses {
		r.loss += loss * h.share(k)
	}
	if name := t.step.names.squareSum; name != "" {
		r.squares = float64(ir.View[float32](out[name])[0])
	}
	return r, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// checkStep is an error if the next step was not finite.
func (t *trainer) checkStep(r result) error {
	switch step := t.state.Step + 1; {
	case !r.diverges():
		return nil
	case !finite(r.loss):
		return t.diverged(step, "the loss", r.loss)
	default:
		return t.diverged(step, "the norm of the gradients", math.Sqrt(r.squares))
	}
}

// checkWeights is an error if weights are not finite after training.
func (t *trainer) checkWeights() error {
	for _, p := range t.params.weights {
		for _, x := range ir.View[float32](p.array) {
			if p.finite && !finite(float64(x)) {
				return t.diverged(t.state.Step, fmt.Sprintf("an element of weight %q", p.name), float64(x))
			}
		}
	}
	return nil
}

// diverged is the error of a loss that is NaN or infinite: before the first step the data or the model are invalid.
func (t *trainer) diverged(step int, what string, loss float64) error {
	if step == 0 {
		return fmt.Errorf("%s is %v before the first step: check the data and the model for NaN and infinite values", what, loss)
	}
	hint := "try a smaller --lr or --clip 1"
	if t.settings.Save != "" {
		hint += "; the last checkpoint is in " + t.settings.Save
	}
	return fmt.Errorf("step %d: %s is %v: %s", step, what, loss, hint)
}

// endStep records the loss and updates the average of the weights.
func (t *trainer) endStep(loss float64) error {
	t.state.record(loss, t.state.Total)
	t.average.add(t.params, t.state.Step)
	t.counted(loss)
	return nil
}

// endEpoch evaluates the model, as it is quantized with QAT, and keeps the best weights.
func (t *trainer) endEpoch(ctx context.Context) error {
	defer t.elapsed.lap(&t.elapsed.Evaluate)
	if t.state.Step > 0 {
		if err := t.observeQuantization(ctx); err != nil {
			return err
		}
	}
	v, err := t.evaluate(ctx)
	if err != nil || t.evaluator == nil {
		return err
	}
	averaged := false
	if t.average != nil && t.state.Step > 0 {
		a, err := t.evaluateAverage(ctx)
		if err != nil {
			return err
		}
		if averaged = a.compare(v) < 0; averaged {
			v = a
		}
	}
	if !t.state.evaluated(v, averaged) {
		return nil
	}
	if averaged {
		t.average.swap(t.params)
		defer t.average.swap(t.params)
	}
	return t.params.writeTo(t.bestFile())
}

// evaluateAverage evaluates the moving average of the weights.
func (t *trainer) evaluateAverage(ctx context.Context) (evaluation, error) {
	t.average.swap(t.params)
	defer t.average.swap(t.params)
	return t.evaluate(ctx)
}

// evaluate runs the evaluator. Without a validation set it only quantizes the weights, for the next step.
func (t *trainer) evaluate(ctx context.Context) (v evaluation, err error) {
	if err := t.fakeQuant.quantizeWeights(ctx, t.environment, t.params.weights); err != nil || t.evaluator == nil {
		return v, err
	}
	if v, err = t.evaluator.run(ctx, t.loader, t.teachers); err != nil {
		return v, err
	}
	if !finite(v.loss) {
		return v, t.diverged(t.state.Step, "the validation loss", v.loss)
	}
	return v, nil
}

// restoreBest restores the weights with the best evaluation.
func (t *trainer) restoreBest() error {
	if t.evaluator == nil {
		t.state.BestAt = t.state.Step
		return nil
	}
	return t.params.readFrom(t.bestFile())
}
