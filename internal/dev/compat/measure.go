package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A subject is a file with what is needed to measure it.
type subject struct {
	model     model
	variant   variant
	path      string
	source    string // the float model
	inputs    []conform.Array
	reference []conform.Array // outputs; nil if no reference runs the file
}

// prepare makes the file of a variant and computes its reference outputs with workers, which are kept.
func prepare(ctx context.Context, make *maker, m model, v variant) (*subject, []string, error) {
	path, forms, err := make.make(ctx, m, v)
	if err != nil {
		return nil, nil, err
	}
	source, err := resolve(m.Path)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := m.inputs(ctx)
	return &subject{model: m, variant: v, path: path, source: source, inputs: inputs}, forms, err
}

// refer computes the reference outputs in the first of the workers that runs the file.
func (s *subject) refer(workers []worker) {
	for _, w := range workers {
		if a := w.ask(request{Model: s.path, Inputs: s.inputs}); a.Error == "" {
			s.reference = a.Outputs
			return
		}
	}
}

// check runs the file once and compares its outputs.
func (s *subject) check(w worker) (*cell, answer) {
	a := w.ask(request{Model: s.path, Inputs: s.inputs})
	return s.cell(a), a
}

// measure runs the file in turn with the float model for some seconds. The worker must be new, for its memory.
func (s *subject) measure(w worker, seconds float64) *cell {
	q := request{Model: s.path, Inputs: s.inputs, Baseline: s.source, Seconds: seconds}
	a := w.ask(q)
	if a.Stage == "baseline" {
		q.Baseline = ""
		a = w.ask(q)
	}
	c := s.cell(a)
	c.Memory, c.Load = a.Memory, load()
	if a.Time > 0 {
		c.Speed = rounded3(a.BaselineTime / a.Time)
	}
	return c
}

func (s *subject) cell(a answer) *cell {
	c := s.state(a)
	c.Exact = !cli.Saturates()
	return c
}

func (s *subject) state(a answer) *cell {
	if a.Error != "" {
		state := refused
		if a.Stage == "run" {
			state = fails
		}
		return &cell{State: state, Error: s.shorten(a.Error)}
	}
	d, err := s.distance(a.Outputs)
	if err != nil {
		return &cell{State: wrong, Error: err.Error()}
	}
	state := wrong
	if d >= s.variant.SQNR {
		state = right
	}
	return &cell{State: state, SQNR: &d}
}

func (s *subject) distance(outputs []conform.Array) (float64, error) {
	if s.reference == nil {
		return 0, errors.New("no reference runs the file")
	}
	return sqnr(s.reference, outputs)
}

// shorten removes paths of this machine from a message and keeps its start and its end, where some runtimes have the
// cause.
func (s *subject) shorten(message string) string {
	message = strings.NewReplacer(s.path, "model.onnx", s.source, "model.onnx").Replace(message)
	const part = 160
	if runes := []rune(message); len(runes) > 2*part {
		message = string(runes[:part]) + " … " + string(runes[len(runes)-part:])
	}
	return message
}

// load is the load average of the last minute, 0 where the system does not have it.
func load() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

func rounded3(x float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return v
}
