package distill

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

var (
	fineTuning = &pass.Method{
		Name: "finetune", Command: "finetune", Stage: pass.Train, New: func() pass.Options { return &FineTune{} },
		Doc: "fine-tune to recover accuracy after compression",
	}
	distillation = &pass.Method{
		Name: "distill", Command: "distill", Stage: pass.Train, New: func() pass.Options { return &Distill{} },
		Doc: "train a student from a teacher (knowledge distillation)",
	}
)

// Method returns the description of the method.
func (FineTune) Method() *pass.Method { return fineTuning }

// Method returns the description of the method.
func (Distill) Method() *pass.Method { return distillation }

// Reference is the first teacher: a student that starts from random weights has nothing else to be compared with.
func (o Distill) Reference() string {
	if len(o.Teacher) == 0 {
		return ""
	}
	return o.Teacher[0]
}

// Budget is --memory-budget.
func (o FineTune) Budget() int64 { return int64(o.MemoryBudget) }

// Budget is --memory-budget.
func (o Distill) Budget() int64 { return int64(o.MemoryBudget) }

// automatic is a weight of the label loss that depends on labels and teacher.
const automatic = -1

// Run trains c's model.
func (o FineTune) Run(ctx context.Context, s *pass.Step) error {
	chosen, err := run(ctx, s, newFineTuning(o))
	s.Ledger.Repeat(chosen)
	return err
}

// newFineTuning returns the settings of FineTune.
func newFineTuning(o FineTune) *settings { return newSettings(o, "finetune", automatic) }

// Run trains c's model.
func (o Distill) Run(ctx context.Context, s *pass.Step) error {
	chosen, err := run(ctx, s, newSettings(FineTune(o), "distill", 0))
	s.Ledger.Repeat(Distill(chosen))
	return err
}

// run trains the model of a step. It returns the options with the values that were chosen.
func run(ctx context.Context, step *pass.Step, s *settings) (chosen FineTune, err error) {
	if s.Path == "" {
		return s.FineTune, pass.OptionErrorf("training samples are missing; use --data")
	}
	t, err := newStepTrainer(step, s)
	if err != nil {
		return s.FineTune, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.runStep(ctx, step); err != nil {
		return s.FineTune, err
	}
	if !step.Env.DryRun {
		step.Ledger.Trained(t.report(step.Method))
	}
	t.loader.recordSamples(step)
	t.params.store(step, step.Env.DryRun || t.state.hasImproved())
	return s.FineTune, nil
}

// runStep prepares and runs the training of a step. A model that nothing changes has nothing to learn from itself.
func (t *trainer) runStep(ctx context.Context, step *pass.Step) error {
	s := t.settings
	s.itself = isItself(step, s)
	teachers, err := teachersOf(step, t.settings)
	if err != nil {
		return err
	}
	if err := t.prepare(ctx, teachers); err != nil || step.Env.DryRun {
		return err
	}
	// After prepare, which opens what the checkpoint is compared with, and creates the arrays that it fills.
	if err := t.resume(ctx); err != nil {
		return err
	}
	return t.train(ctx)
}

// isItself reports whether the teacher is the trained model itself.
func isItself(step *pass.Step, s *settings) bool {
	return len(s.Teacher) == 0 && s.QAT == "" && s.Reinit == nil && !s.prunes && !step.Env.Changed
}

// newStepTrainer returns the trainer of a step's model.
func newStepTrainer(step *pass.Step, s *settings) (_ *trainer, err error) {
	t := newTrainer(step.Model, step.Eval, step.Env.Workers, s)
	// no weights are read in each run
	t.limits = memory.Limits{Memory: step.Env.Limits.Memory, Steps: step.Env.Limits.Steps}
	t.params.pruned, t.params.keep = pass.PrunedWeights(step.Model), s.KeepZeros
	// By the metadata of the model, and by the pruning steps before this training.
	maps.Copy(t.params.pruned, s.pruned)
	t.params.selected = selection(step)
	t.progress.notify, t.limit.exclusive, t.laterBytes = step.Env.OnProgress, step.Env.DedicatedProcess,
		step.Env.MinimumMemory
	if len(step.Model.Graph.Outputs) == 0 {
		return nil, errors.New("the model has no outputs")
	}
	if len(t.params.selected) == 0 {
		return nil, untrainable(step)
	}
	t.fakeQuant, err = newFakeQuant(step, s)
	return t, err
}

// teachersOf returns the models of --teacher, or the source model if there is one.
func teachersOf(step *pass.Step, s *settings) (list []*ir.Model, err error) {
	if len(s.Teacher) == 0 {
		if step.Env.Source == nil {
			return nil, nil
		}
		return []*ir.Model{step.Env.Source}, nil
	}
	if step.Env.Open == nil {
		return nil, errors.New("--teacher: cannot open models in this context")
	}
	for _, path := range s.Teacher {
		m, err := step.Env.Open(path)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// selection returns the names of the weights in the step's selection.
func selection(s *pass.Step) map[string]bool {
	names := map[string]bool{}
	for v := range grad.Trainable(s.Model, nil) {
		if !s.Select.Excludes(v, pass.Consumers(v)) {
			names[v.Name] = true
		}
	}
	return names
}

// untrainable is the error of a model without trainable weights in the step's selection.
func untrainable(s *pass.Step) error {
	if len(grad.Trainable(s.Model, nil)) > 0 {
		return errors.New("none of the selected weights is trainable")
	}
	for _, v := range pass.Weights(s.Model) {
		if t := v.Const.DType; t != ir.Float && t != ir.Double {
			return fmt.Errorf("the model has no trainable weights: tensor %q is %s; training supports float32, so export or "+
				"fine-tune the model in float32 and convert it afterwards", v.Name, t)
		}
	}
	return errors.New("the model has no trainable weights")
}

// report returns the record of the training for the report.
func (t *trainer) report(method string) pass.Training {
	h := &t.state.History
	return pass.Training{
		Method: method, Steps: t.state.Step, Samples: t.state.Step * t.layout.batch, Kept: t.state.BestAt,
		Averaged: t.state.Averaged, Chosen: t.settings.choices,
		Loss: h.Loss, ValidationLoss: h.Validation, ValidationAccuracy: h.Agreement, Metric: h.MetricName,
		ValidationMetric: h.Metric,
		TrainingMemory:   t.plannedMemory, Outputs: t.trainedOutputs(),
	}
}

// trainedOutputs are the outputs that have losses.
func (t *trainer) trainedOutputs() (list []pass.TrainedOutput) {
	for _, of := range t.graphs.terms {
		if of.output == "" {
			continue
		}
		o := pass.TrainedOutput{Name: of.output, Loss: of.kind}
		if of.theirs != of.output {
			o.Teacher = of.theirs
		}
		list = append(list, o)
	}
	return list
}
