package calibrate

import (
	"context"
	"errors"
	"maps"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Trial runs a model repeatedly on the same few samples, to measure the effect of changing activations.
type Trial struct {
	step    *pass.Step
	data    *Data
	names   []string
	session *engine.Interpreter
	batches []*dataset.Batch
}

// Try prepares m to run on up to the given number of samples. Visits observe the named values.
func (d *Data) Try(ctx context.Context, s *pass.Step, m *ir.Model, names []string, samples int) (_ *Trial, err error) {
	t := &Trial{step: s, data: d, names: names}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	few := *d
	few.MaxSamples = samples
	set, err := few.set(s, m)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range few.batches(ctx, s, m, set, false) {
		if err != nil {
			return nil, err
		}
		if t.batches = append(t.batches, b); len(t.batches) >= samples {
			break
		}
	}
	t.session, err = engine.Open(ctx, m, engine.Options{Workers: s.Env.Workers, Limits: s.Env.Limits, Keep: names})
	return t, err
}

// Run runs all samples and calls visit for the named values as they are computed.
func (t *Trial) Run(ctx context.Context, visit Visit) error {
	for _, b := range t.batches {
		// An input may be a value that visits quantize in place.
		own := &dataset.Batch{Inputs: maps.Clone(b.Inputs)}
		for name, a := range own.Inputs {
			own.Inputs[name] = a.Clone() // visit may change it
		}
		if err := t.data.run(ctx, t.session, own, t.names, visit); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the session.
func (t *Trial) Close() error {
	if t.session == nil {
		return nil
	}
	return t.session.Close()
}
