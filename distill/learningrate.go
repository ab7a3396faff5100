package distill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// Trials choose the learning rate like the range test of Smith (Cyclical Learning Rates for Training Neural Networks,
// 2017, arXiv:1506.01186, section 3.3). His test raises the rate from step to step of one training. Here each rate has
// a short training of its own, which starts from the same weights and has the same samples: losses then differ by the
// rates alone, and not by samples or by earlier steps.
const (
	trialSteps = 32                 // of a trial; its loss is the mean of the second half
	trialRatio = 3.1622776601683795 // of successive learning rates: half a decade
	trialRange = 8                  // maximum number of ratios between a rate and the default of the optimizer
	// a rate is better if its loss is at most this fraction: tiny rates have the loss of the start
	trialGain  = 0.98
	trialFar   = 2              // a loss of the start this many times that of equal probabilities is far from it
	trialBack  = 2              // ratios to go back from a rate that only gets from far to equal probabilities
	trialEpoch = math.MaxUint32 // gives the order of the samples, which is that of no epoch
)

// rateTrials choose the learning rate of a training.
type rateTrials struct {
	settings *settings
	terms    []term
	steps    *stepRunner
}

// chooseRate sets the learning rate of a training of this number of steps, unless it is given. Training that is shorter
// than a trial has a fifth of the default of the optimizer, which few steps of fine-tuning do not harm.
func (t *rateTrials) chooseRate(ctx context.Context, steps int) error {
	s := t.settings
	if s.LR > 0 {
		return nil
	}
	first := s.chosenOptimizer().rate
	if steps < trialSteps {
		s.LR = first / 5
		s.choose("lr", s.LR, "a fifth of the default of the optimizer, because the training is shorter than a trial")
		return nil
	}
	var tried []string
	start, least := 0.0, math.Inf(1)
	best, err := descend(func(k int) (float64, error) {
		rate := trialRate(first, k)
		before, loss, err := t.run(ctx, rate, trialSteps)
		tried = append(tried, fmt.Sprintf("%g: %.4g", rate, loss))
		start, least = before, min(least, loss)
		return loss, err
	})
	if err != nil {
		return err
	}
	why := fmt.Sprintf("lowest training loss in trials of %d steps (%s)", trialSteps, strings.Join(tried, ", "))
	if equal := t.equalProbabilities(); destroys(start, least, equal) {
		// A tenth: two half decades.
		best -= trialBack
		why = fmt.Sprintf("a tenth of the rate of the %s: with it the model learns equal probabilities (%.4g) from a "+
			"loss of %.4g", why, equal, start)
	}
	s.LR = trialRate(first, best)
	s.choose("lr", s.LR, why)
	return nil
}

// destroys reports whether the lowest loss of trials is no lower than that of equal probabilities, after a start far
// from it: then the quickest way there, which is to destroy the model, has the lowest loss.
func destroys(start, least, equal float64) bool {
	return equal > 0 && start > trialFar*equal && least >= trialGain*equal
}

// equalProbabilities is the loss of a model that gives all classes the same probability; 0 if the loss is not the
// cross-entropy with labels alone.
func (t *rateTrials) equalProbabilities() float64 {
	if len(t.terms) != 1 || losses[t.terms[0].kind] != losses["cross-entropy"] {
		return 0
	}
	tape := t.steps.step.tape
	return math.Log(float64(t.terms[0].classes(tape.Shape(tape.Value(t.terms[0].student)))))
}

// trialRate is the rate k ratios from the first one, rounded to two digits.
func trialRate(first float64, k int) float64 {
	rate, err := strconv.ParseFloat(strconv.FormatFloat(first*math.Pow(trialRatio, float64(k)), 'g', 2, 64), 64)
	if err != nil {
		panic(err)
	}
	return rate
}

// descend returns the number with a local minimum of f: from 0 upwards, and downwards if no larger number is better. A
// direction ends after two numbers in a row without improvement, of which the first may be noise. Infinite values do
// not end the way down.
func descend(f func(k int) (float64, error)) (best int, err error) {
	least, err := f(0)
	if err != nil {
		return 0, err
	}
	for _, direction := range []int{1, -1} {
		for k, worse := direction, 0; worse < 2 && max(k, -k) <= trialRange; k += direction {
			y, err := f(k)
			if err != nil {
				return 0, err
			}
			switch {
			case y < trialGain*least:
				best, least, worse = k, y, 0
			case direction > 0 || !math.IsInf(least, 1):
				worse++
			}
		}
		if best != 0 {
			break
		}
	}
	return best, nil
}

// run trains for n steps at a constant rate, and returns the loss of the first step and the mean loss of the second
// half, infinite if training diverges. Afterwards the weights, the optimizer state and the state of the training are as
// before.
func (t *rateTrials) run(ctx context.Context, rate float64, n int) (first, mean float64, err error) {
	params, start := t.steps.graphs.params, filepath.Join(t.steps.graphs.folder, "start")
	saved, watch := *t.steps.state, *t.steps.progress
	if err := params.writeTo(start); err != nil {
		return 0, 0, err
	}
	// Each step adds to the scores of movement pruning, also those of trials.
	defer params.copyScores()()
	step := 0
	next := func() hyperparameters { return t.steps.hyperparameters(step, rate) }
	err = t.steps.train(ctx, t.steps.data.ofTrial(n), next, func(r result) error {
		if r.diverges() {
			return errDiverged
		}
		if step == 0 {
			first = r.loss
		}
		// The second half: losses of the first steps are those of the start, whatever the rate.
		if step++; step > n/2 {
			mean += r.loss / float64(n-n/2)
		}
		return nil
	})
	if errors.Is(err, errDiverged) {
		mean, err = math.Inf(1), nil
	}
	// The loss scale, too, which a trial with a large rate may have halved.
	*t.steps.state, *t.steps.progress = saved, watch
	t.steps.progress.lap(&t.steps.progress.Trials)
	return first, mean, errors.Join(err, params.readFrom(start), t.steps.clearOptimizer())
}

var errDiverged = errors.New("training diverges")
