package mcompress

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
)

// FineTune trains the model at path in and writes it to path out, with the samples of WithData and their labels. Pruned weights stay
// zero. Steps may hold a distill.FineTune with options of training, and methods before and after training, such as prune.L1 and
// quantize.WeightInt4; without a distill.FineTune it has its defaults.
func FineTune(ctx context.Context, in, out string, steps ...Step) (*Result, error) {
	return train(ctx, in, out, "finetune", nil, steps)
}

// Distill trains the student at a path on the outputs of the teacher, with the samples of WithData, and writes it to path out. With an
// empty path the student is derived from the teacher by the steps before training, such as prune.Channel. Steps may hold a
// distill.Distill with options of training, which may name further teachers, or the steps of distill.Stages.
func Distill(ctx context.Context, teacher, student, out string, steps ...Step) (*Result, error) {
	if student == "" {
		student = teacher
	}
	return train(ctx, student, out, "distill", []pass.Option{{Name: "teacher", Value: teacher}}, steps)
}

// train runs steps with one of the method called name, which has the given options.
func train(ctx context.Context, in, out, name string, options []pass.Option, steps []Step) (*Result, error) {
	s, methods, err := split(steps)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(methods, func(o pass.Options) bool { return o.Method().Name == name })
	if i < 0 {
		if i = slices.IndexFunc(methods, func(o pass.Options) bool { return o.Method().Stage > pass.Train }); i < 0 {
			i = len(methods)
		}
		step, err := newStep(name)
		if err != nil {
			return nil, err
		}
		methods = slices.Insert(methods, i, step)
	}
	for i, o := range methods {
		if o.Method().Name != name {
			continue
		}
		if methods[i], err = pass.Preset(o, options); err != nil {
			return nil, err
		}
	}
	return compress(ctx, job.Options{Input: in, Output: out}, s, methods)
}

// newStep is the method called name with its defaults.
func newStep(name string) (pass.Options, error) {
	all := Methods()
	i := slices.IndexFunc(all, func(m *pass.Method) bool { return m.Name == name })
	return pass.NewStep(all[i], nil)
}
