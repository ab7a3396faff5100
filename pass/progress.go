package pass

import "time"

// A Progress is the state of a training after one of its steps, and once more after its end. Ran, Samples and the times
// are those of this run: a training that is resumed from a checkpoint counts from there.
type Progress struct {
	Method      string  // finetune, distill
	Step, Steps int     // done so far, and in all without early stopping
	Loss        float64 // of the step
	Done        bool    // training has ended

	Workers  int           // worker threads
	Ran      int           // steps
	Samples  int           // training samples, counted once per use
	Wait     time.Duration // for batches of training samples
	Loading  Loading       // of training samples, those that were read ahead included
	Compute  time.Duration // teacher, forward and backward pass, update
	Evaluate time.Duration // evaluations on the validation set, and observations for QAT
	Save     time.Duration // checkpoints
	Trials   time.Duration // of learning rates
}

// StepTime is the mean time of a step, with the time it waited for its samples.
func (p Progress) StepTime() time.Duration {
	return (p.Wait + p.Compute) / time.Duration(max(p.Ran, 1))
}

// SamplesPerSecond is the mean number of training samples per second of steps; 0 before the first step.
func (p Progress) SamplesPerSecond() float64 {
	if p.Ran == 0 {
		return 0
	}
	return float64(p.Samples) / (p.Wait + p.Compute).Seconds()
}

// WaitFraction is the fraction of the steps' time that they waited for samples.
func (p Progress) WaitFraction() float64 {
	if p.Ran == 0 {
		return 0
	}
	return p.Wait.Seconds() / (p.Wait + p.Compute).Seconds()
}
