package distill

import (
	"context"
	"path/filepath"
)

// A validation evaluates the weights of a training after each epoch, or their moving average, and keeps the best ones
// in a file.
type validation struct {
	graphs    *graphBuilder
	teachers  *teachers  // nil without distillation losses
	evaluator *evaluator // nil without validation set
	average   *average   // nil without --ema
	state     *state
}

// bestFile is the snapshot of the weights with the best evaluation.
func (v *validation) bestFile() string { return filepath.Join(v.graphs.folder, "best") }

// endEpoch evaluates the model, as it is quantized with QAT, and keeps the best weights.
func (v *validation) endEpoch(ctx context.Context) error {
	if v.state.Step > 0 { // before the first step, prepare has updated it
		if err := v.graphs.updateQuantization(ctx); err != nil {
			return err
		}
	}
	best, err := v.evaluate(ctx)
	if err != nil || v.evaluator == nil {
		return err
	}
	averaged := false
	if v.average != nil && v.state.Step > 0 { // before the first step, the average is the weights
		a, err := v.evaluateAverage(ctx)
		if err != nil {
			return err
		}
		// Of equal evaluations the weights are kept, from which training goes on.
		if averaged = a.compare(best) < 0; averaged {
			best = a
		}
	}
	if !v.state.recordEvaluation(best, averaged) {
		return nil
	}
	if averaged {
		// The snapshot has the average, but training goes on from the weights.
		v.average.swap(v.graphs.params)
		defer v.average.swap(v.graphs.params)
	}
	return v.graphs.params.writeTo(v.bestFile())
}

// evaluateAverage evaluates the moving average of the weights.
func (v *validation) evaluateAverage(ctx context.Context) (evaluation, error) {
	v.average.swap(v.graphs.params)
	defer v.average.swap(v.graphs.params)
	return v.evaluate(ctx)
}

// evaluate runs the evaluator. Without a validation set it only quantizes the weights, for the next step.
func (v *validation) evaluate(ctx context.Context) (e evaluation, err error) {
	if err := v.graphs.quantizeWeights(ctx); err != nil || v.evaluator == nil {
		return e, err
	}
	if e, err = v.evaluator.evaluate(ctx, v.graphs.loader, v.teachers); err != nil {
		return e, err
	}
	if !finite(e.loss) {
		return e, v.graphs.settings.divergence(v.state.Step, "the validation loss", e.loss)
	}
	return e, nil
}

// restoreBest restores the weights with the best evaluation.
func (v *validation) restoreBest() error {
	if v.evaluator == nil {
		v.state.BestAt = v.state.Step
		return nil
	}
	return v.graphs.params.readFrom(v.bestFile())
}
