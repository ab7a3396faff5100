package distill

import (
	"context"

	"github.com/mcompress/mcompress/pass"
)

// Iterative prunes a model in steps with training after each (iterative pruning; Han et al., Learning both Weights and
// Connections, 2015, arXiv:1506.02626): the amount rises by a schedule up to that of the pruning method. Each training
// has an optimizer and a learning rate schedule of its own, as shapes change if channels are pruned. The selection of
// weights is that of pruning: all weights are trained.
type Iterative struct {
	// Prune is the pruning method; the zero value is L1Global.
	Prune Pruning `flag:"prune" default:"l1-global" usage:"pruning 'method' with its options, as in \"l1-global amount=0.95\""`
	Gradual
	// Rewind is what later trainings take from the first one: none, learning-rate, or weights, which are reset to those
	// of its start.
	Rewind string `flag:"rewind" default:"none" enum:"none,learning-rate,weights" usage:"what later trainings take from the first one ('state'): none, learning-rate, or weights (and learning-rate): weights that are not pruned are reset to their values at the start of the first training"`
	// RewindEpoch is the number of epochs of a training from scratch after which weights are those that are restored.
	RewindEpoch int `flag:"rewind-epoch" usage:"'number' of epochs of the training from scratch by --reinit after which weights are those that --rewind weights restores"`
	FineTune    `names:"schedule=lr-schedule,steps=training-steps,time=-,qat=-"`
}

var iterativePruning = &pass.Method{
	Name: "iterative", Command: "prune", Stage: pass.Train, New: func() pass.Options { return &Iterative{} },
	Doc: "prune in steps with training after each (iterative pruning)",
}

// Method returns the description of the method.
func (Iterative) Method() *pass.Method { return iterativePruning }

// Check reports invalid values and combinations.
func (o *Iterative) Check() error {
	if err := o.Prune.Set(o.Prune.String()); err != nil { // with its defaults
		return err
	}
	switch {
	case o.RewindEpoch < 0:
		return pass.OptionErrorf("--rewind-epoch %d: must be a positive number", o.RewindEpoch)
	case o.RewindEpoch > 0 && (o.Rewind != "weights" || o.Reinit == nil):
		return pass.OptionErrorf("--rewind-epoch requires --rewind weights and --reinit: a trained model is rewound to " +
			"its own weights")
	case o.Rewind == "weights" && o.Prune.Method().Shrinks:
		return pass.OptionErrorf("--rewind weights requires a method that keeps the shapes of weights, and %s removes "+
			"channels; use --rewind learning-rate", o.Prune.Method().Name)
	}
	return o.Gradual.validate(&o.FineTune)
}

// Run prunes and trains in turn. With --reinit the model is trained from scratch first.
func (o Iterative) Run(ctx context.Context, step *pass.Step) error {
	it := newIterations(step, o.FineTune)
	it.repeats = o.Rewind != "none"
	if o.Rewind == "weights" {
		it.rewind = &rewinding{epoch: o.RewindEpoch}
	}
	if o.Reinit != nil && !step.Env.DryRun {
		if err := it.train(ctx, false); err != nil {
			return err
		}
	}
	next := o.Prune.InSteps()
	for i := it.firstStep(o.Gradual.Steps); i <= o.Gradual.Steps; i++ {
		if err := it.prune(ctx, next(o.Gradual.fractionAt(i))); err != nil {
			return err
		}
		if err := it.train(ctx, i == o.Gradual.Steps); err != nil {
			return err
		}
	}
	it.finish()
	return nil
}
