package distill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// train runs the training loop from the current state.
func (t *trainer) train(ctx context.Context) error {
	t.progress.startLap()
	t.state.init(t.layout.storage == "float16")
	clock := startClock()
	first := t.settings.rewind.firstStep(t.steps.data.stepsPerEpoch())
	// Not restored from a checkpoint, whose state has both.
	if t.state.Step == 0 {
		t.state.Step, t.state.First = first, first
	}
	// With --rewind-epoch 0 the early weights are those before the first step.
	if err := t.keepEarly(); err != nil {
		return err
	}
	// The model before training is the first candidate for the best weights, unless it is random.
	if t.state.Step == first && t.settings.Reinit == nil {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	// After the evaluation of the start, whose duration is a part of --time.
	if err := t.schedule.resolve(ctx, clock); err != nil {
		return err
	}
	// A step that ends an epoch is stored before the evaluation after it, during which training may be interrupted.
	if t.state.Step > first && t.state.Evaluated < t.state.Step && t.endsEpoch() {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	for t.state.Step < t.state.Total && !t.state.stopsEarly(*t.settings.Patience) {
		if err := t.epoch(ctx); err != nil {
			return err
		}
	}
	// Before the check: weights that diverged after the best epoch are no error.
	if err := t.validation.restoreBest(); err != nil {
		return err
	}
	if err := t.checkWeights(); err != nil {
		return err
	}
	t.progress.Done = true
	t.progress.report(&t.state)
	return nil
}

// epoch runs the remaining steps of the current epoch.
func (t *trainer) epoch(ctx context.Context) error {
	n := t.steps.data.stepsPerEpoch()
	epoch, done := t.state.Step/n, t.state.Step%n
	// The order of an epoch follows from seed and number alone, so that a resumed training skips what it has done
	// without a position of the loader in the checkpoint.
	samples := t.steps.data.epoch(epoch)[done*t.layout.batch:]
	// --steps may end within an epoch.
	if left := (t.state.Total - t.state.Step) * t.layout.batch; left < len(samples) {
		samples = samples[:left]
	}
	if err := t.trainOn(ctx, samples); err != nil {
		return err
	}
	// After an epoch and not after a step: a batch without any label is no error by itself.
	if k := slices.Index(t.state.Counted, 0); k >= 0 {
		return t.step.targets[k].errUncounted(fmt.Sprintf("the samples of %d steps", t.state.Step-t.state.First),
			"there is nothing to learn from")
	}
	if t.endsEpoch() {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	if err := t.keepEarly(); err != nil {
		return err
	}
	// After the evaluation and the early weights, which are parts of the checkpoint.
	if t.state.Step%n == 0 && t.settings.SaveEvery == 0 || t.state.Step == t.state.Total {
		return t.save()
	}
	return nil
}

// trainOn runs a training step for every batch of samples.
func (t *trainer) trainOn(ctx context.Context, samples []int) error {
	return t.steps.train(ctx, samples, t.hyperparameters, func(r result) error {
		// Before the step counts: a state that was saved with NaN could only be resumed to fail again.
		if err := t.settings.checkStep(t.state.Step+1, r); err != nil {
			return err
		}
		t.endStep(r.loss)
		// Also after an interruption: steps end before the loop sees it, so that the checkpoint has a whole one.
		if every := t.settings.SaveEvery; every > 0 && t.state.Step%every == 0 || ctx.Err() != nil {
			return t.save()
		}
		return nil
	})
}

// hyperparameters returns those of the current step.
func (t *trainer) hyperparameters() hyperparameters {
	h := t.steps.hyperparameters(t.state.Step, t.settings.rateAt(t.state.Step, t.state.Total))
	// A training with rewound weights begins within the schedule, but with new optimizer states: counted by the schedule,
	// the bias correction of Adam would take their zeros for means, and the first update would be from half to 3.2 times
	// the learning rate (Kingma and Ba, 2015, arXiv:1412.6980, section 3).
	h.update -= t.state.First
	return h
}

// endStep records the loss and updates the average of the weights.
func (t *trainer) endStep(loss float64) {
	// First, as the average depends on the number of steps done.
	t.state.record(loss, t.state.Total)
	t.validation.average.addStep(t.params, t.state.Step-t.state.First)
	t.progress.Loss = loss
	t.progress.endStep(&t.state, t.layout.batch, t.loader.stats())
}

// endsEpoch reports whether weights are evaluated after the current step: at the end of an epoch or of the training.
func (t *trainer) endsEpoch() bool {
	return t.state.Step%t.steps.data.stepsPerEpoch() == 0 || t.state.Step == t.state.Total
}

// endEpoch evaluates the weights.
func (t *trainer) endEpoch(ctx context.Context) error {
	defer t.progress.lap(&t.progress.Evaluate)
	err := t.validation.endEpoch(ctx)
	if err == nil {
		t.state.Evaluated = t.state.Step
	}
	return err
}

// save writes a checkpoint.
func (t *trainer) save() error {
	if t.settings.Save == "" {
		return nil
	}
	if err := t.checkWeights(); err != nil {
		return err
	}
	defer t.progress.lap(&t.progress.Save)
	return t.checkpoint.save(t.settings.Save, t.state)
}

// resume restores the checkpoint in --save, with --resume and if the file exists.
func (t *trainer) resume(ctx context.Context) error {
	if err := t.checkpoint.checkWritable(t.settings.Save); err != nil || !t.settings.Resume {
		return err
	}
	return t.checkpoint.restore(ctx, t.settings.Save, &t.state)
}

// keepEarly keeps the weights to which later trainings rewind.
func (t *trainer) keepEarly() error {
	return t.settings.rewind.keepEarly(t.params, t.folder, t.state.Step, t.steps.data.stepsPerEpoch())
}

// checkWeights is an error if weights are not finite after training.
func (t *trainer) checkWeights() error {
	for _, p := range t.params.weights {
		for _, x := range ir.View[float32](p.array) {
			if p.finite && !finite(float64(x)) {
				return t.settings.divergence(t.state.Step, fmt.Sprintf("an element of weight %q", p.name), float64(x))
			}
		}
	}
	return nil
}

// checkStep is an error if a step was not finite.
func (s *settings) checkStep(step int, r result) error {
	switch {
	case !r.diverges():
		return nil
	case !finite(r.loss):
		return s.divergence(step, "the loss", r.loss)
	default:
		return s.divergence(step, "the norm of the gradients", math.Sqrt(r.squares))
	}
}

// divergence is the error of a loss that is NaN or infinite: before the first step the data or the model are invalid.
func (s *settings) divergence(step int, what string, loss float64) error {
	if step == 0 {
		return fmt.Errorf("%s is %v before the first step: check the data and the model for NaN and infinite values", what,
			loss)
	}
	hint := "try a smaller --lr or --clip 1"
	if s.Save != "" {
		hint += "; the last checkpoint is in " + s.Save
	}
	return fmt.Errorf("step %d: %s is %v: %s", step, what, loss, hint)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
