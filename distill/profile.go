package distill

import (
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/pass"
)

// A Recorder measures the steps of a training: package profile.
type Recorder = profile.Recorder

// WithRecorder returns steps of which those that train are measured by r. It does not affect their results and reports.
func WithRecorder(steps []pass.Options, r *Recorder) []pass.Options {
	return changeTraining(steps, func(o *FineTune) { o.Recorder = r })
}

// attachRecorder lets a recorder measure the graphs of training, and counts the memory that is held between steps. set
// is nil without data.
func attachRecorder(r *Recorder, c *candidate, ts *teachers, set *dataset.Set) error {
	if r == nil {
		return nil
	}
	roles := c.step.roles
	of := func(value string) string {
		if r, ok := roles[value]; ok {
			return string(r.Phase)
		}
		return string(grad.Update)
	}
	if err := r.Attach(c.step.session, fixedPlan(c.step.session), of); err != nil {
		return err
	}
	for _, g := range c.update.inOrder() {
		if err := r.Attach(g.session, fixedPlan(g.session), phase(string(grad.Update))); err != nil {
			return err
		}
	}
	for _, teacher := range ts.activeTeachers() {
		if err := r.Attach(teacher.session, nil, phase(profile.Teacher)); err != nil {
			return err
		}
	}
	r.Hold(memory.Weight, c.memory.Weights)
	r.Hold(memory.State, c.memory.States)
	r.Hold(memory.Gradient, c.memory.Sums)
	if set != nil {
		r.Samples(set.InMemory)
	}
	return nil
}

// phase returns the function of a graph whose nodes have all the same phase.
func phase(name string) func(string) string { return func(string) string { return name } }

// fixedPlan returns the plan of a session whose inputs have fixed shapes, with its number of worker threads; nil if it
// cannot be planned.
func fixedPlan(s *engine.Interpreter) *engine.Usage {
	u, err := s.Usage(inputTypes(s))
	if err != nil {
		return nil
	}
	return u
}
