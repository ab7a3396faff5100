package distill

import (
	"context"
	"time"
)

// A chooser chooses options that were not given.
type chooser struct{ *trainer }

// schedule sets the options that depend on the data and the model, or takes them from the state of a checkpoint: number of steps, learning rate,
// patience. The clock runs since the beginning of training.
func (t chooser) schedule(ctx context.Context, c clock) error {
	s := t.settings
	s.resolve(t.stepsPerEpoch())
	if t.state.Total == 0 {
		if err := t.choose(ctx, c); err != nil {
			return err
		}
		if s.Recorder != nil {
			s.Recorder.Reset() // steps of trials do not count
		}
	}
	s.LR, s.chosen = t.state.LR, t.state.Chosen
	if s.Time > 0 {
		s.Time, s.Steps = 0, t.state.Total
	}
	s.resolvePatience(t.state.Total, t.stepsPerEpoch())
	return nil
}

// choose sets the number of steps and the learning rate.
func (t chooser) choose(ctx context.Context, c clock) error {
	s := t.settings
	steps := s.Epochs * t.stepsPerEpoch()
	if s.Steps > 0 {
		steps = s.Steps
	}
	var p *pace
	if s.Time > 0 {
		var err error
		if p, err = t.measurePace(ctx); err != nil {
			return err
		}
		steps = p.steps(time.Duration(s.Time).Seconds()-c.seconds(), t.stepsPerEpoch())
	}
	if err := t.chooseRate(ctx, steps); err != nil {
		return err
	}
	if p != nil {
		steps = p.steps(time.Duration(s.Time).Seconds()-c.seconds(), t.stepsPerEpoch())
		s.choose("steps", steps, "--time "+time.Duration(s.Time).String())
	}
	t.state.Total, t.state.LR, t.state.Chosen = steps, s.LR, s.chosen
	return nil
}

// A pace is the speed of training in seconds.
type pace struct{ step, epochEnd float64 }

// paceSteps is the number of steps that measure the pace.
const paceSteps = 5

// measurePace measures steps, and what is done after each epoch.
func (t chooser) measurePace(ctx context.Context) (*pace, error) {
	c := startClock()
	if err := t.observeQuantization(ctx); err != nil {
		return nil, err
	}
	if _, err := t.evaluate(ctx); err != nil {
		return nil, err
	}
	p := &pace{epochEnd: c.seconds()}
	c = startClock()
	if _, _, err := t.trial(ctx, t.settings.chosenOptimizer().rate, paceSteps); err != nil {
		return nil, err
	}
	p.step = c.seconds() / paceSteps
	return p, nil
}

// steps is the number of steps in a time, at least 1. A further end of an epoch is that of the last one, which is not complete.
func (p *pace) steps(seconds float64, perEpoch int) int {
	return max(1, int((seconds-p.epochEnd)/(p.step+p.epochEnd/float64(perEpoch))))
}
