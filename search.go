package mcompress

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// DefaultCandidates are the candidates of a search that names none, in the order in which methods can be combined.
// Without data static-int8 is left out; with a target methods that are slower there than float.
func DefaultCandidates() []string {
	return []string{
		"static-int8", "dynamic-int8", "weight-int8", "weight-int4", "weight-int4:block=128", "weight-int2:block=16",
		"weight-int2:block=64", "palette:entries=4", "palette", "float16",
	}
}

// RandomSearchSamples is the number of random samples of a search without data.
const RandomSearchSamples = tune.RandomSamples

// A search finds the steps for models.
type search struct {
	*run
	folder *atomicfile.Folder // of ranges that candidates share
}

// newSearch is the search of the request. Results are verified on the samples of the search.
func (x *run) newSearch() (*search, error) {
	if x.verify == nil {
		return nil, fieldErrorf("{Search} requires verification, which {Verification.Skip} turns off")
	}
	// Ranges of activations are computed by the first trial of a candidate, and read by its later ones and for other
	// weights.
	folder, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	return &search{x, folder}, nil
}

func (s *search) close() error { return s.folder.Close() }

// options are those of a search on one model.
func (s *search) options(ctx context.Context, model, out string) (tune.Options, error) {
	v := s.verify
	o := tune.Options{
		Input: model, Data: v.Data, Scores: v.Scores, Metric: v.Metric, Bytes: s.Search.MaxSize, Workers: s.Limits.Workers,
		Memory: s.Limits.recipes(), Limits: s.Limits.run().Half(), Dir: s.folder.Path, Result: out,
		Layout: onnx.LayoutOptions{Strip: s.StripMetadata, DataSuffix: s.dataSuffix, DataFiles: s.DataFiles},
	}
	for _, g := range s.Gates {
		if searched(g) {
			o.Gates = append(o.Gates, g)
		}
	}
	// A ratio becomes a size here: the source's size is known for each model only.
	if s.Search.MinRatio > 0 {
		f, err := remote.OpenModel(ctx, model)
		if err != nil {
			return o, err
		}
		o.Bytes = int64(float64(f.Size()) / s.Search.MinRatio)
		if err := f.Close(); err != nil {
			return o, err
		}
	}
	var err error
	if o.Target, err = s.target(); err != nil {
		return o, err
	}
	o.Candidates, err = s.candidates(o.Target)
	return o, err
}

// candidates are those of the request, or the default ones, with the options of the target. Default ones without a form
// for it, and those known to be slower than float there, are left out; given ones without a form are an error.
func (s *search) candidates(target *pass.Target) ([]tune.Candidate, error) {
	given, data := s.Search.Candidates != nil, !s.verify.Data.Generated()
	words := s.Search.Candidates
	if !given {
		words = DefaultCandidates()
	}
	var known []string
	var runs []tune.Candidate
	for _, word := range words {
		c, err := parseCandidate(word)
		if err != nil {
			return nil, fieldErrorf("{Search.Candidates}: %w", err)
		}
		if !given {
			// Options that were given replace those of default candidates, some of which are equal then.
			c = c.withoutGiven(s.Search.Options, data)
		}
		if slices.Contains(known, c.String()) || !given && !data && c.method == (quantize.StaticInt8{}).Method() {
			continue
		}
		known = append(known, c.String())
		t := c.tuned(s.Search.Options, filepath.Join(s.folder.Path, fmt.Sprintf("%d.ranges.json", len(known)-1)))
		// Tried without weights: whether the target has a form for the method does not depend on them.
		step, err := t.Step(nil, tune.Trying, 0)
		if err == nil {
			err = target.Check([]pass.Options{step})
		}
		switch {
		case err != nil && given:
			return nil, err
		case err == nil && (given || target == nil || target.Slower(step) == ""):
			runs = append(runs, tune.Candidate{Name: t.Name, Step: withTarget(target, t.Step)})
		}
	}
	return runs, nil
}

// withTarget returns the steps of a candidate with the options of t.
func withTarget(
	t *pass.Target, step func(pass.Globs, tune.Phase, int) (pass.Options, error),
) func(pass.Globs, tune.Phase, int) (pass.Options, error) {
	return func(only pass.Globs, phase tune.Phase, calibrate int) (pass.Options, error) {
		o, err := step(only, phase, calibrate)
		if err == nil {
			_, err = t.Apply([]pass.Options{o})
		}
		return o, err
	}
}

// choose finds the steps for a model, whose order is that of the candidates.
func (s *search) choose(ctx context.Context, model, out string, j ir.Journal) ([]pass.Options, *pass.Search, error) {
	o, err := s.options(ctx, model, out)
	if err != nil {
		return nil, nil, err
	}
	// Measurements are units of the journal: an interrupted search continues after the last one.
	o.Journal = j
	show, end := s.Events.stage(remote.Shown(model), StageSearch)
	defer end()
	if show != nil {
		o.Progress = func(done, all int, _ string) { show(int64(done), int64(all)) }
	}
	steps, found, err := tune.Choose(ctx, o)
	for _, text := range pass.Warnings(steps) {
		s.Events.warnText(text)
	}
	s.warnLeftOut(model, found)
	return steps, found, err
}

// warnLeftOut names what a search on a model left out; found may be nil.
func (s *search) warnLeftOut(model string, found *pass.Search) {
	if found == nil {
		return
	}
	for _, failed := range found.Failures() {
		s.Events.warn(fmt.Errorf("%s: left out: %s", model, failed))
	}
}

// A Sensitivity is how much the outputs of a model change by each candidate for each of its weights, or an error.
type Sensitivity struct {
	Model string
	Found *pass.Search
	Err   error
}

// Sensitivities measures the sensitivities of the models of a request with a Search, and writes nothing. An error of
// one of several models does not end those of the others; each is called as soon as a model is done, unless it is nil.
func (r Request) Sensitivities(ctx context.Context, each func(Sensitivity) error) (_ []Sensitivity, err error) {
	if r, err = r.Defaults().expanded(); err != nil {
		return nil, err
	}
	switch l := r.List; {
	case r.Search == nil:
		return nil, fieldErrorf("{Search} is nil")
	case l != List{}:
		return nil, fieldErrorf("a sensitivity analysis and {List} exclude each other")
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	x := &run{Request: r}
	if err := onlyFiles("Sensitivity", x.Models); err != nil {
		return nil, err
	}
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.search.close()) }()
	var all []Sensitivity
	for _, model := range x.Models {
		found, err := x.search.sensitivity(ctx, model)
		if err != nil && ctx.Err() != nil {
			return all, err
		}
		if found == nil && err == nil {
			continue // of a worker of a plan: the others have the rest
		}
		all = append(all, Sensitivity{model, found, err})
		if each != nil {
			if err := each(all[len(all)-1]); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// sensitivity measures the sensitivities of a model; nil if other processes have the rest.
func (s *search) sensitivity(ctx context.Context, model string) (*pass.Search, error) {
	o, err := s.options(ctx, model, "")
	if err != nil {
		return nil, err
	}
	o.Layout = onnx.LayoutOptions{Strip: o.Layout.Strip} // no result is written, in however many files
	r, err := s.resume(ctx, model, report.Stem(model)+".sensitivity", nil)
	if err != nil {
		return nil, err
	}
	if s.division.isPlanning() {
		return nil, s.division.measure(ctx, s.run, listed{model: model}, nil)
	}
	o.Journal = r
	found, err := tune.Sensitivity(ctx, o)
	if s.division.isWorker() {
		if _, elsewhere := ir.ElsewhereIn(err); err == nil || elsewhere {
			return nil, nil
		}
	}
	if err = errors.Join(err, r.leave(ctx, err)); err != nil {
		return nil, withModel(model, err)
	}
	return found, nil
}
