package latency

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
)

// A Profile is the time and memory of a number of runs; its steps are runs.
type Profile struct {
	Model string `json:"model"`
	Batch int64  `json:"batch"`
	*profile.Profile
	*profile.Recorder `json:"-"`
}

// Profile runs the model of j on the embedded backend and returns the time by operator and node. It calls warn with
// errors of the weight cache.
func (j *Job) Profile(ctx context.Context, warn func(error)) (*Profile, error) {
	if j.Backend != Embedded {
		return nil, errors.New("only the embedded backend can be profiled")
	}
	f, err := remote.OpenModel(ctx, j.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, explain, err := j.inputs(ctx, f.Model)
	if err != nil {
		return nil, err
	}
	s, err := j.open(ctx, f, warn)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r, err := attach(s.(*engine.Interpreter), in)
	if err != nil {
		return nil, explain(err)
	}
	run := func(times int) error {
		for range times {
			r.Begin()
			if _, err := s.Run(ctx, in, nil); err != nil {
				return explain(err)
			}
			r.End()
		}
		return nil
	}
	if err := run(max(j.Warmup, 1)); err != nil {
		return nil, err
	}
	r.Reset()
	if err := run(max(j.Runs, 1)); err != nil {
		return nil, err
	}
	return &Profile{Model: j.Model, Batch: j.Batch, Profile: r.Profile(), Recorder: r}, nil
}

// attach returns a recorder of the runs of a session.
func attach(e *engine.Interpreter, in map[string]*ir.Array) (*profile.Recorder, error) {
	u, err := e.Usage(specsOf(in))
	if err != nil {
		return nil, err
	}
	r := profile.New()
	return r, r.Attach(e, u, nil)
}
