package distill

import (
	"context"
	"time"
)

// A scheduler chooses the number of steps, the learning rate and the patience of a training, unless they are given.
type scheduler struct {
	settings   *settings
	trials     *rateTrials
	validation *validation
	state      *state
}

// perEpoch is the number of steps of an epoch.
func (s *scheduler) perEpoch() int { return s.trials.steps.data.stepsPerEpoch() }

// resolve sets the options that depend on the data and the model, or takes them from the state of a checkpoint: number
// of steps, learning rate, patience. The clock runs since the beginning of training.
func (s *scheduler) resolve(ctx context.Context, c clock) error {
	o := s.settings
	o.resolve(s.perEpoch())
	if s.state.Total == 0 {
		if err := s.choose(ctx, c); err != nil {
			return err
		}
		if o.Recorder != nil {
			o.Recorder.Reset() // steps of trials do not count
		}
	}
	o.LR, o.choices = s.state.LR, s.state.Chosen
	// The recipe of the result has the number of steps, as a repeated run has to train as long and not as fast.
	if o.Time > 0 {
		o.Time, o.Steps = 0, s.state.Total
	}
	o.resolvePatience(s.state.Total, s.perEpoch())
	return nil
}

// choose sets the number of steps and the learning rate.
func (s *scheduler) choose(ctx context.Context, c clock) error {
	o := s.settings
	steps := o.Epochs * s.perEpoch()
	if o.Steps > 0 {
		steps = o.Steps
	}
	var p *pace
	if o.Time > 0 {
		var err error
		if p, err = s.measurePace(ctx); err != nil {
			return err
		}
		steps = p.steps(time.Duration(o.Time).Seconds()-c.seconds(), s.perEpoch())
	}
	if err := s.trials.chooseRate(ctx, steps); err != nil {
		return err
	}
	// Again, as the trials have taken a part of the time.
	if p != nil {
		steps = p.steps(time.Duration(o.Time).Seconds()-c.seconds(), s.perEpoch())
		o.choose("steps", steps, "--time "+time.Duration(o.Time).String())
	}
	s.state.Total, s.state.LR, s.state.Chosen = steps, o.LR, o.choices
	return nil
}

// A pace is the speed of training in seconds.
type pace struct{ step, epochEnd float64 }

// paceSteps is the number of steps that measure the pace.
const paceSteps = 5

// measurePace measures steps, and what is done after each epoch.
func (s *scheduler) measurePace(ctx context.Context) (*pace, error) {
	c := startClock()
	// What the end of an epoch takes, with QAT that of quantizing the model, too. Nothing of it is recorded.
	if err := s.validation.graphs.updateQuantization(ctx); err != nil {
		return nil, err
	}
	if _, err := s.validation.evaluate(ctx); err != nil {
		return nil, err
	}
	p := &pace{epochEnd: c.seconds()}
	c = startClock()
	if _, _, err := s.trials.run(ctx, s.settings.chosenOptimizer().rate, paceSteps); err != nil {
		return nil, err
	}
	p.step = c.seconds() / paceSteps
	return p, nil
}

// steps is the number of steps in a time, at least 1. A further end of an epoch is that of the last one, which is not
// complete.
func (p *pace) steps(seconds float64, perEpoch int) int {
	return max(1, int((seconds-p.epochEnd)/(p.step+p.epochEnd/float64(perEpoch))))
}
