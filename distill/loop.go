package distill

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/ir"
)

// stepsPerEpoch is the number of steps for one pass over all samples.
func (t *trainer) stepsPerEpoch() int { return len(t.loader.training) / t.layout.batch }

// totalSteps is the number of steps without early stopping.
func (t *trainer) totalSteps() int {
	if t.settings.Steps > 0 {
		return t.settings.Steps
	}
	return t.settings.Epochs * t.stepsPerEpoch()
}

// train runs the training loop from the current state.
func (t *trainer) train(ctx context.Context) error {
	t.watch.start()
	t.state.init(t.layout.storage == "float16")
	if t.state.Step == 0 && t.settings.Reinit == nil {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	for t.state.Step < t.totalSteps() && !t.state.stopped {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	if err := t.restoreBest(); err != nil {
		return err
	}
	t.watch.Done = true
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
	if left := (t.totalSteps() - t.state.Step) * t.layout.batch; left < len(samples) {
		samples = samples[:left]
	}
	if err := t.steps(ctx, samples); err != nil {
		return err
	}
	atEnd := t.state.Step%n == 0
	if atEnd || t.state.Step == t.totalSteps() {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	if atEnd && t.settings.SaveEvery == 0 || t.state.Step == t.totalSteps() {
		return t.save()
	}
	return nil
}

// shuffled returns the order of n training samples in an epoch.
func shuffled(n int, seed uint64, epoch int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}

// steps runs a step for every batch of samples.
func (t *trainer) steps(ctx context.Context, samples []int) error {
	i, sum := 0, 0.0 // micro-batch and loss of the step
	t.beginStep()
	change := t.augmenter.from(t.state.Step * t.layout.microBatches)
	for b, err := range t.loader.batches(ctx, samples, t.layout.microBatch(), change) {
		t.settings.Recorder.Spent(profile.Waiting, t.watch.lap(&t.watch.Wait))
		if err != nil {
			return err
		}
		loss, err := t.microBatch(ctx, b, samples[b.First:b.First+b.N], i)
		if err != nil {
			return err
		}
		t.watch.lap(&t.watch.Compute)
		sum += loss / float64(t.layout.microBatches)
		if i++; i < t.layout.microBatches {
			continue
		}
		if err := t.endStep(ctx, sum); err != nil {
			return err
		}
		i, sum = 0, 0
		if every := t.settings.SaveEvery; every > 0 && t.state.Step%every == 0 {
			if err := t.save(); err != nil {
				return err
			}
		}
		t.beginStep()
	}
	return nil
}

// hyperparameters returns those of the current step.
func (t *trainer) hyperparameters() hyperparameters {
	return hyperparameters{
		rate: t.settings.rateAt(t.state.Step, t.totalSteps()), decay: t.settings.WeightDecay,
		step: t.state.Step + 1, lossScale: t.state.LossScale, microBatches: t.layout.microBatches,
	}
}

// microBatch runs micro-batch i of the current step. It returns the loss.
func (t *trainer) microBatch(ctx context.Context, b *dataset.Batch, samples []int, i int) (float64, error) {
	if i == 0 {
		if err := t.fakeQuant.quantizeWeights(ctx, t.environment, t.params.weights); err != nil {
			return 0, err
		}
	}
	targets, err := t.teacher.targets(ctx, t.step.targets, b, b.Inputs, samples)
	if err != nil {
		return 0, err
	}
	loss, out, err := t.step.run(ctx, b.Inputs, targets, t.hyperparameters())
	if err != nil {
		return 0, err
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, t.diverged(t.state.Step+1, "the loss", loss)
	}
	if name := t.step.names.squareSum; name != "" {
		t.state.adjustLossScale(float64(ir.View[float32](out[name])[0]), t.layout.storage == "float16")
	}
	return loss, nil
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

// endStep updates the weights if gradients were accumulated, and records the loss.
func (t *trainer) endStep(ctx context.Context, loss float64) error {
	if t.update != nil {
		total, err := t.update.run(ctx, t.hyperparameters())
		if err != nil {
			return err
		}
		t.state.adjustLossScale(total, t.layout.storage == "float16")
	}
	t.state.record(loss, t.totalSteps())
	t.counted(loss)
	return ctx.Err()
}

// endEpoch evaluates the model, as it is quantized with QAT, and keeps the best weights. The evaluator's memory replaces the step's.
func (t *trainer) endEpoch(ctx context.Context) error {
	defer t.watch.lap(&t.watch.Evaluate)
	if t.state.Step > 0 {
		if err := t.observeQuantization(ctx); err != nil {
			return err
		}
	}
	if err := t.fakeQuant.quantizeWeights(ctx, t.environment, t.params.weights); err != nil {
		return err
	}
	if t.evaluator == nil {
		return nil
	}
	t.step.session.Free()
	v, err := t.evaluator.run(ctx, t.loader, t.teacher)
	t.evaluator.session.Free()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	if math.IsNaN(v.loss) || math.IsInf(v.loss, 0) {
		return t.diverged(t.state.Step, "the validation loss", v.loss)
	}
	if t.state.evaluated(v, t.settings.Patience) {
		return t.params.writeTo(t.bestFile())
	}
	return nil
}

// restoreBest restores the weights with the best evaluation.
func (t *trainer) restoreBest() error {
	t.state.History.Kept = t.state.Step
	if t.evaluator == nil || t.state.BestAt == t.state.Step {
		return nil
	}
	t.state.History.Kept = t.state.BestAt
	return t.params.readFrom(t.bestFile())
}
