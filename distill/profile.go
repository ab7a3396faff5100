package distill

import (
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
	return changed(steps, func(o *FineTune) { o.Recorder = r })
}

// attach lets the recorder of the options measure the graphs of steps, and counts the memory that is held between them.
func (t *trainer) attach() error {
	r := t.settings.Recorder
	if r == nil {
		return nil
	}
	roles := t.step.roles
	of := func(value string) string {
		if r, ok := roles[value]; ok {
			return string(r.Phase)
		}
		return string(grad.Update)
	}
	if err := r.Attach(t.step.session, planned(t.step.session), of); err != nil {
		return err
	}
	for _, g := range t.update.all() {
		if err := r.Attach(g.session, planned(g.session), phase(string(grad.Update))); err != nil {
			return err
		}
	}
	for _, teacher := range t.teachers.opened() {
		if err := r.Attach(teacher.session, nil, phase(profile.Teacher)); err != nil {
			return err
		}
	}
	r.Hold(memory.Weight, t.memory.Weights)
	r.Hold(memory.State, t.memory.States)
	r.Hold(memory.Gradient, t.memory.Sums)
	if t.loader.set != nil {
		r.Samples(t.loader.set.InMemory)
	}
	return nil
}

// phase returns the function of a graph whose nodes have all the same phase.
func phase(name string) func(string) string { return func(string) string { return name } }

// planned returns the plan of a session whose inputs have fixed shapes, with its number of worker threads; nil if it cannot be planned.
func planned(s *engine.Interpreter) *engine.Usage {
	u, err := s.Usage(declared(s))
	if err != nil {
		return nil
	}
	return u
}
