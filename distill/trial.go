package distill

import (
	"cmp"
	"context"
	"errors"

	"github.com/mcompress/mcompress/pass"
)

// A Trial is the result of some steps of training.
type Trial struct {
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"` // of the fastest step
	Loss    float64 `json:"loss"`    // of the last step
	Random  bool    `json:"random"`  // the samples were random
}

// RunTrial trains a step's model for some steps, as FineTune with options o would, and discards the result. Without a
// learning rate in o it has the default of the optimizer. Without data in o it repeats a batch of random inputs, with
// random classes as labels.
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
	// Without the scheduler: neither trials of rates nor evaluations are measured.
	t.settings.resolve(t.steps.data.stepsPerEpoch())
	t.settings.LR, t.state.Total = cmp.Or(t.settings.LR, t.settings.chosenOptimizer().rate), steps
	r, start := &Trial{Steps: steps, Random: t.loader.set == nil}, startClock()
	return r, t.steps.train(ctx, t.steps.data.ofTrial(steps), t.hyperparameters, func(of result) error {
		if took := start.seconds(); r.Seconds == 0 || took < r.Seconds {
			r.Seconds = took
		}
		r.Loss, start = of.loss, startClock()
		t.endStep(of.loss)
		return nil
	})
}
