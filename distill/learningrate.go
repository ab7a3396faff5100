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

// Trials choose the learning rate like the range test of Smith (Cyclical Learning Rates for Training Neural Networks, 2017,
// arXiv:1506.01186, section 3.3). His test raises the rate from step to step of one training. Here each rate has a short training of its own,
// which starts from the same weights and has the same samples: losses then differ by the rates alone, and not by samples or by earlier steps.
const (
	trialSteps = 32                 // of a trial; its loss is the mean of the second half
	trialRatio = 3.1622776601683795 // of successive learning rates: half a decade
	trialRange = 8                  // maximum number of ratios between a rate and the default of the optimizer
	trialGain  = 0.98               // a rate is better if its loss is at most this fraction: tiny rates have the loss of the start
	trialFar   = 2                  // a loss of the start this many times that of equal probabilities is far from it
	trialBack  = 2                  // ratios to go back from a rate that only gets from far to equal probabilities
	trialEpoch = math.MaxUint32     // gives the order of the samples, which is that of no epoch
)

// chooseRate sets the learning rate of a training of this number of steps, unless it is given. Training that is shorter than a trial has a fifth of
// the default of the optimizer, which few steps of fine-tuning do not harm.
func (t chooser) chooseRate(ctx context.Context, steps int) error {
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
		before, loss, err := t.trial(ctx, rate, trialSteps)
		tried = append(tried, fmt.Sprintf("%g: %.4g", rate, loss))
		start, least = before, min(least, loss)
		return loss, err
	})
	if err != nil {
		return err
	}
	why := fmt.Sprintf("lowest training loss in trials of %d steps (%s)", trialSteps, strings.Join(tried, ", "))
	if equal := t.equalProbabilities(); destroys(start, least, equal) {
		best -= trialBack
		why = fmt.Sprintf("a tenth of the rate of the %s: with it the model learns equal probabilities (%.4g) from a loss of %.4g", why, equal, start)
	}
	s.LR = trialRate(first, best)
	s.choose("lr", s.LR, why)
	return nil
}

// destroys reports whether the lowest loss of trials is no lower than that of equal probabilities, after a start far from it: then the quickest
// way there, which is to destroy the model, has the lowest loss.
func destroys(start, least, equal float64) bool {
	return equal > 0 && start > trialFar*equal && least >= trialGain*equal
}

// equalProbabilities is the loss of a model that gives all classes the same probability; 0 if the loss is not the cross-entropy with labels alone.
func (t chooser) equalProbabilities() float64 {
	ts := t.graphs.terms
	if len(ts) != 1 || losses[ts[0].kind] != losses["cross-entropy"] {
		return 0
	}
	return math.Log(float64(ts[0].classes(t.step.tape.Shape(t.step.tape.Value(ts[0].student)))))
}

// trialRate is the rate k ratios from the first one, rounded to two digits.
func trialRate(first float64, k int) float64 {
	rate, err := strconv.ParseFloat(strconv.FormatFloat(first*math.Pow(trialRatio, float64(k)), 'g', 2, 64), 64)
	if err != nil {
		panic(err)
	}
	return rate
}

// descend returns the number with a local minimum of f: from 0 upwards, and downwards if no larger number is better. A direction ends after
// two numbers in a row without improvement, of which the first may be noise. Infinite values do not end the way down.
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

// trial trains for n steps at a constant rate, and returns the loss of the first step and the mean loss of the second half, infinite if training
// diverges. Afterwards the weights, the optimizer state and the state of the training are as before.
func (t chooser) trial(ctx context.Context, rate float64, n int) (first, mean float64, err error) {
	start, saved, watch := filepath.Join(t.folder, "start"), t.state, t.elapsed
	if err := t.params.writeTo(start); err != nil {
		return 0, 0, err
	}
	defer t.params.copyScores()()
	step := 0
	err = t.steps(ctx, t.trialSamples(n), func() hyperparameters { return t.hyperparametersOf(step, rate) }, func(r result) error {
		if r.diverges() {
			return errDiverged
		}
		if step == 0 {
			first = r.loss
		}
		if step++; step > n/2 {
			mean += r.loss / float64(n-n/2)
		}
		return nil
	})
	if errors.Is(err, errDiverged) {
		mean, err = math.Inf(1), nil
	}
	t.state, t.elapsed = saved, watch
	t.elapsed.lap(&t.elapsed.Trials)
	return first, mean, errors.Join(err, t.params.readFrom(start), t.clearOptimizer())
}

var errDiverged = errors.New("training diverges")

// trialSamples returns the samples of n steps. All trials have the same ones.
func (t chooser) trialSamples(n int) []int {
	order := shuffled(len(t.loader.training), *t.settings.Seed, trialEpoch)
	samples := make([]int, n*t.layout.batch)
	for i := range samples {
		samples[i] = t.loader.training[order[i%len(order)]]
	}
	return samples
}

// clearOptimizer clears the optimizer states and accumulated gradients.
func (t chooser) clearOptimizer() error {
	reset := func(p *parameter) error {
		for _, s := range p.states {
			clear(s.Data)
		}
		clear(p.gradSum.Data)
		return nil
	}
	if t.update != nil {
		return t.update.eachParameter(reset)
	}
	for _, p := range t.params.weights {
		if err := reset(p); err != nil {
			return err
		}
	}
	return nil
}
