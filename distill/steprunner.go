package distill

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/ir"
)

// A stepRunner runs training steps: the micro-batches of each, and the update of the weights.
type stepRunner struct {
	*candidate
	data     *microBatches
	graphs   *graphBuilder
	teachers *teachers // nil without distillation losses
	counter  *counter  // nil before the first step in several micro-batches
	state    *state
	progress *progress
}

// A result is that of a step: its loss, and the sum of the squares of all gradients, at a loss scale. A weight whose
// gradient is not finite did not change.
type result struct{ loss, squares, lossScale float64 }

// diverges reports whether the step was not finite. Gradients that overflow at a loss scale above 1 are no reason: the
// next steps have a smaller one.
func (r result) diverges() bool { return !finite(r.loss) || !finite(r.squares) && r.lossScale <= 1 }

// train updates the weights by every batch of samples, with the hyperparameters of next. It calls done after each step.
// With --save a step that has begun ends, as an interrupted one may have changed weights.
func (s *stepRunner) train(interruptible context.Context, samples []int, next func() hyperparameters,
	done func(result) error) error {
	ctx := interruptible
	if s.graphs.settings.Save != "" {
		// Steps update weights while the backward pass still runs (op.Op.Writes): one that stopped in between would leave a
		// mixture that no checkpoint may have.
		ctx = context.WithoutCancel(interruptible)
	}
	if s.layout.microBatches > 1 {
		// One micro-batch is the whole step: its shares are 1, and nothing has to be counted.
		if err := s.counts().read(ctx, samples); err != nil {
			return err
		}
	}
	i, r, total := 0, result{}, []float64(nil) // micro-batch, result and counts of the step
	s.progress.iterate(s.data.loader.stats())
	s.progress.beginStep()
	for b, err := range s.data.each(ctx, samples, s.state.Step) {
		s.progress.recorder.Spent(profile.Waiting, s.progress.lap(&s.progress.Wait))
		if err != nil {
			return err
		}
		// Equal for all micro-batches of a step, since the state changes after the last one: accumulated gradients have one
		// loss scale.
		h := next()
		h.microBatch = i
		own := s.step.countsOf(b)
		s.state.count(own)
		if s.layout.microBatches > 1 {
			if i == 0 {
				// Of the whole step, before its first micro-batch is weighted by them.
				total = s.counter.total(samples[b.First : b.First+s.layout.batch])
			}
			h.shares = shares(own, total)
		}
		of, err := s.microBatch(ctx, b, samples[b.First:b.First+b.N], i, h)
		if err != nil {
			return err
		}
		s.progress.lap(&s.progress.Compute)
		// The loss is a sum over micro-batches, each weighted by its share. Squares are those of the last one, or of the
		// update after it: a sum of squares of parts is not the square of their sum.
		r.loss, r.squares, r.lossScale = r.loss+of.loss, of.squares, h.lossScale
		if i++; i < s.layout.microBatches {
			continue
		}
		// After the last micro-batch only. It clears the accumulated gradients, so that a checkpoint needs none of them.
		if s.update != nil {
			if r.squares, err = s.update.runGraphs(ctx, h); err != nil {
				return err
			}
		}
		// Before done, which may store the state in a checkpoint.
		s.state.adjustLossScale(r.squares, s.layout.storage == "float16")
		if err := errors.Join(done(r), interruptible.Err()); err != nil {
			return err
		}
		// An interruption was returned above, after done: the step is complete and stored.
		i, r = 0, result{}
		s.progress.beginStep()
	}
	return nil
}

// hyperparameters returns those of a step, counted from 0, at a learning rate.
func (s *stepRunner) hyperparameters(step int, rate float64) hyperparameters {
	return hyperparameters{
		rate: rate, decay: *s.graphs.settings.WeightDecay, step: step + 1, update: step + 1, lossScale: s.state.LossScale,
	}
}

// counts returns what samples count in steps of several micro-batches.
func (s *stepRunner) counts() *counter {
	if s.counter == nil {
		s.counter = &counter{set: s.data.loader.set, step: s.step, bySample: map[int][]float64{}}
	}
	return s.counter
}

// microBatch runs micro-batch i of a step. It returns its part of the loss and, if the step updates weights, the
// squares of the gradients.
func (s *stepRunner) microBatch(ctx context.Context, b *dataset.Batch, samples []int, i int,
	h hyperparameters) (r result, err error) {
	if i == 0 { // weights change at the end of a step only
		if err := s.graphs.quantizeWeights(ctx); err != nil {
			return r, err
		}
	}
	targets, err := s.teachers.targets(ctx, s.step.targets, b, samples)
	if err != nil {
		return r, err
	}
	losses, out, err := s.step.run(ctx, b, targets, h)
	if err != nil {
		return r, err
	}
	for k, loss := range losses {
		r.loss += loss * h.share(k)
	}
	if name := s.step.names.squareSum; name != "" {
		r.squares = float64(ir.View[float32](out[name])[0])
	}
	return r, nil
}

// clearOptimizer clears the optimizer states and accumulated gradients.
func (s *stepRunner) clearOptimizer() error {
	// All states are zero before the first step, those of 8-bit Adam too; trials run before it and leave nothing else.
	reset := func(p *parameter) error {
		for _, a := range p.states {
			clear(a.Data)
		}
		clear(p.gradSum.Data)
		return nil
	}
	if s.update != nil {
		return s.update.eachParameter(reset)
	}
	for _, p := range s.graphs.params.weights {
		if err := reset(p); err != nil {
			return err
		}
	}
	return nil
}
