package distill

import (
	"context"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune"
)

// Movement prunes the weights that fine-tuning moves towards zero (movement pruning; Sanh, Wolf and Rush, Movement
// Pruning: Adaptive Sparsity by Fine-Tuning, 2020, arXiv:2005.07683): those of lowest importance -Σ w·∂L/∂w, summed
// over all steps of training so far. It trains the dense model, then prunes in steps with training after each. The mask
// of each step is a new one: weights under it keep their values, and return if their importance rises.
type Movement struct {
	// Amount is the fraction of the elements of each weight that is pruned, above 0 up to 1; 0 for 0.5.
	Amount float64 `flag:"amount" default:"0.5" usage:"'fraction' of the elements of each weight that is pruned, above 0 up to 1"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
	Gradual
	FineTune `names:"schedule=lr-schedule,steps=training-steps,time=-,qat=-,reinit=-"`
}

var movementPruning = &pass.Method{
	Name: "movement", Command: "prune", Stage: pass.Train, New: func() pass.Options { return &Movement{} },
	Doc: "zero the weights that fine-tuning moves towards zero (movement pruning)",
}

// Method returns the description of the method.
func (Movement) Method() *pass.Method { return movementPruning }

// Check reports invalid values and combinations.
func (o *Movement) Check() error {
	switch {
	case !(o.Amount > 0 && o.Amount <= 1):
		return pass.OptionErrorf("--amount %v is not a fraction above 0 up to 1: 0.4 prunes 40 %%", o.Amount)
	case o.Storage == "float16":
		return pass.OptionErrorf("--storage float16 is not supported: its loss scale changes the scores of weights")
	}
	return o.Gradual.validate(&o.FineTune)
}

// Run trains and prunes in turn.
func (o Movement) Run(ctx context.Context, step *pass.Step) error {
	it := newIterations(step, o.FineTune)
	it.repeats = true
	m := &movement{iterations: it, weights: trainedWeights(step.Model, prune.Weights(step, o.Embeddings))}
	if len(m.weights) == 0 {
		return untrainable(step)
	}
	it.movement = newImportance(m.weights)
	if !step.Env.DryRun {
		if err := it.train(ctx, false); err != nil {
			return err
		}
	}
	for i := it.firstStep(o.Gradual.Steps); i <= o.Gradual.Steps; i++ {
		if err := m.prune(ctx, o.Amount*o.Gradual.fractionAt(i)); err != nil {
			return err
		}
		if err := it.train(ctx, i == o.Gradual.Steps); err != nil {
			return err
		}
	}
	// Only now: a weight that a mask prunes keeps its value until the last mask, as it may return.
	if err := m.apply(ctx); err != nil {
		return err
	}
	it.finish()
	return nil
}

// A movement is a run of movement pruning.
type movement struct {
	*iterations
	weights []*ir.Value
}

// prune sets the masks for a fraction of the elements of each weight.
func (m *movement) prune(ctx context.Context, amount float64) error {
	for _, v := range m.weights {
		w, err := m.read(ctx, v)
		if err != nil {
			return err
		}
		m.movement[v.Name].prune(ir.View[float32](w), int(math.RoundToEven(amount*float64(w.Elems()))))
	}
	return nil
}

// read reads a weight.
func (m *movement) read(ctx context.Context, v *ir.Value) (*ir.Array, error) {
	a := withoutData(v.Const.Spec)
	if err := readTensor(ctx, m.step.Eval, v.Const, a); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", v.Name, err)
	}
	return a, nil
}

// apply zeroes the weights that are pruned in the model.
func (m *movement) apply(ctx context.Context) error {
	for _, v := range m.weights {
		a, err := m.read(ctx, v)
		if err != nil {
			return err
		}
		w, pruned := ir.View[float32](a), 0
		for i, keep := range ir.View[float32](m.movement[v.Name].mask) {
			if keep == 0 {
				w[i] = 0
				pruned++
			}
		}
		replace(m.step, v, ir.Mem(a.Data), pass.Reason{Code: pass.Pruned,
			Detail: fmt.Sprintf("%d of %d elements", pruned, len(w))})
	}
	return nil
}
