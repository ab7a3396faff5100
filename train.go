package mcompress

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// FineTune trains the model of the request, with its data and their labels. Pruned weights stay zero. Steps may have a
// distill.FineTune with options of training, and methods before and after training, such as prune.L1 and
// quantize.WeightInt4; without a distill.FineTune it has its defaults.
func (r Request) FineTune(ctx context.Context) (*Result, error) {
	var err error
	if r.Steps, err = training(r.Steps, "finetune", nil); err != nil {
		return nil, err
	}
	return r.Run(ctx)
}

// Distill trains the model of the request, a student, on the outputs of the teacher at a path. Without a model the
// student is derived from the teacher by the steps before training, such as prune.Channel. Steps may have a
// distill.Distill with options of training, which may name further teachers, or the steps of distill.Stages.
func (r Request) Distill(ctx context.Context, teacher string) (*Result, error) {
	if len(r.Models) == 0 {
		r.Models = []string{teacher}
	}
	var err error
	if r.Steps, err = training(r.Steps, "distill", []pass.Option{{Name: "teacher", Value: teacher}}); err != nil {
		return nil, err
	}
	return r.Run(ctx)
}

// training returns steps with one of the method called name, which has the given options: without one, before the
// methods that follow training.
func training(steps []Step, name string, options []pass.Option) ([]Step, error) {
	steps = slices.Clone(steps)
	if i := slices.Index(steps, nil); i >= 0 {
		return nil, fieldErrorf("{Steps}: step %d is nil", i+1)
	}
	if !slices.ContainsFunc(steps, func(o Step) bool { return o.Method().Name == name }) {
		i := slices.IndexFunc(steps, func(o Step) bool { return o.Method().Stage > pass.Train })
		if i < 0 {
			i = len(steps)
		}
		step, err := newStep(name)
		if err != nil {
			return nil, err
		}
		steps = slices.Insert(steps, i, step)
	}
	for i, o := range steps {
		if o.Method().Name != name {
			continue
		}
		var err error
		if steps[i], err = pass.Preset(o, options); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// newStep is the method called name with its defaults.
func newStep(name string) (Step, error) {
	all := Methods()
	i := slices.IndexFunc(all, func(m *pass.Method) bool { return m.Name == name })
	return pass.NewStep(all[i], nil)
}
