package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/tune"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// automatic has the flags of mixed precision by measurement.
type automatic struct {
	on, sensitivity bool
	candidates      mcli.Words
	size            mcli.Size
	ratio           float64
	target          *targetFlag
	layout          func() onnx.LayoutOptions // of the results
}

// candidates are the default candidates, each a method and its options, in the order in which methods can be combined.
var candidates = []string{
	"static-int8", "dynamic-int8", "weight-int8", "weight-int4", "weight-int4:block=128", "weight-int2:block=16", "weight-int2:block=64", "palette:entries=4", "palette",
	"float16",
}

func (a *automatic) flags() []cli.Flag {
	return group("mixed precision by measurement", func(fs *flag.FlagSet) {
		fs.BoolVar(&a.on, "auto", false, "mixed precision: choose the method of each weight by its measured sensitivity; the smallest file within the gates on outputs, or with --target-size the most accurate one of that size")
		fs.BoolVar(&a.sensitivity, "sensitivity", false, "print the sensitivity of each weight to each method, write nothing")
		fs.Var(&a.candidates, "candidates", "comma-separated candidate `methods`, each with its options as in weight-int4:block=64:algo=hqq (default: static-int8 with --data, dynamic-int8, weight-int8, weight-int4 and weight-int2 in blocks of two sizes, palette of 4 and 16 entries, float16)")
		fs.Var(&a.size, "target-size", "maximum file `size` for --auto")
		fs.Float64Var(&a.ratio, "target-ratio", 0, "compression ratio for --auto, a `factor`")
	})
}

// requested reports whether a search or a sensitivity analysis is requested, and checks the flags.
func (a *automatic) requested(p *verificationFlags) (bool, error) {
	switch {
	case !a.on && !a.sensitivity:
		for _, f := range []struct {
			name  string
			given bool
		}{{"candidates", a.candidates != nil}, {"target-size", a.size > 0}, {"target-ratio", a.ratio != 0}} {
			if f.given {
				return false, usagef("--%s requires --auto", f.name)
			}
		}
		return false, nil
	case a.size > 0 && a.ratio != 0:
		return false, usagef("--target-size and --target-ratio exclude each other")
	case a.ratio != 0 && !(a.ratio > 1):
		return false, usagef("--target-ratio %v: must be above 1", a.ratio)
	case a.on && a.size == 0 && a.ratio == 0 && !slices.ContainsFunc(*p.gates, searched):
		return false, usagef("--auto requires a goal: --max-accuracy-drop, --max-metric-drop, --min-sqnr, --min-cosine or --min-agreement, or --target-size or --target-ratio")
	}
	return true, nil
}

// searched reports whether a search keeps the gate: one on the outputs of both models.
func searched(g report.Limit) bool {
	return slices.ContainsFunc(verification.Rules(), func(r verification.Rule) bool { return r.Name == g.Name && !r.Timed })
}

// search returns the options of a search on one model.
func (a *automatic) search(ctx context.Context, t *tool, model, out, dir string, o *mcli.MethodOptions, v job.Verification, gates []report.Limit) (tune.Options, error) {
	s := tune.Options{
		Input: model, Data: v.Data, Scores: v.Scores, Metric: v.Metric, Bytes: int64(a.size), Workers: t.workers, Memory: recipeBudget(int64(t.memory)), Limits: t.limits().Half(), Dir: dir, Result: out, Layout: a.layout(),
	}
	for _, g := range gates {
		if searched(g) {
			s.Gates = append(s.Gates, g)
		}
	}
	if a.ratio > 0 {
		f, err := remote.OpenModel(ctx, model)
		if err != nil {
			return s, err
		}
		s.Bytes = int64(float64(f.Size()) / a.ratio)
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	among, err := a.among(o, !v.Data.Generated(), s.Dir)
	if err != nil {
		return s, err
	}
	if s.Target, err = a.target.target(); err == nil {
		s.Candidates, err = a.target.candidates(among, a.candidates != nil)
	}
	return s, err
}

// among returns the candidates of --candidates, or the default ones.
func (a *automatic) among(o *mcli.MethodOptions, data bool, dir string) ([]tune.Candidate, error) {
	words := []string(a.candidates)
	if words == nil {
		words = candidates
	}
	var known []string
	var list []tune.Candidate
	for _, word := range words {
		c, err := parseCandidate(word, o)
		if err != nil {
			return nil, usagef("--candidates: %v", err)
		}
		if a.candidates == nil {
			c = c.withoutGiven(o, data)
		}
		if slices.Contains(known, c.String()) || a.candidates == nil && !data && c.method == (quantize.StaticInt8{}).Method() {
			continue
		}
		known = append(known, c.String())
		list = append(list, c.tuned(o, filepath.Join(dir, fmt.Sprintf("%d.ranges.json", len(list)))))
	}
	return list, nil
}

// chooser returns the search that finds the steps for a model, and warns of their order, which is that of the candidates.
func (a *automatic) chooser(t *tool, command, dir string, o *mcli.MethodOptions, v job.Verification, gates []report.Limit) func(context.Context, string, string, ir.Journal) ([]pass.Options, *pass.Search, error) {
	return func(ctx context.Context, model, out string, j ir.Journal) ([]pass.Options, *pass.Search, error) {
		s, err := a.search(ctx, t, model, out, dir, o, v, gates)
		if err != nil {
			return nil, nil, err
		}
		s.Journal = j
		if p := t.newProgress(model); p != nil {
			s.Progress = p.searched
			defer p.stop()
		}
		steps, found, err := tune.Choose(ctx, s)
		t.warnOrder(command, steps)
		t.warnLeftOut(command, model, found)
		return steps, found, err
	}
}

// warnLeftOut names what a search on a model left out; found may be nil.
func (t *tool) warnLeftOut(command, model string, found *pass.Search) {
	if found == nil {
		return
	}
	for _, failed := range found.Failures() {
		printError(t.stderr, fmt.Errorf("%s: warning: %s: left out: %s", command, model, failed))
	}
}

// sensitivities prints the sensitivity of each weight of each model. An error of one of several models does not end those of the others.
func (a *automatic) sensitivities(c *cli.Context, t *tool, dir string, o *mcli.MethodOptions, models []string, v job.Verification, w *writing) error {
	var codes []int
	for _, model := range models {
		err := a.sensitivityOf(c, t, dir, o, model, v, w)
		if err != nil && (len(models) == 1 || c.Context.Err() != nil) {
			return err
		}
		if err != nil {
			printError(t.stderr, fmt.Errorf("%s: %w", c.Command.Name, err))
		}
		codes = append(codes, exitCode(err))
	}
	return ended(codes)
}

// sensitivityOf prints the sensitivity of each weight of a model.
func (a *automatic) sensitivityOf(c *cli.Context, t *tool, dir string, o *mcli.MethodOptions, model string, v job.Verification, w *writing) error {
	s, err := a.search(c.Context, t, model, "", dir, o, v, w.gates)
	if err != nil {
		return err
	}
	s.Layout = onnx.LayoutOptions{Strip: s.Layout.Strip} // no result is written, in however many files
	r, err := w.resume(c, t, model, report.Stem(model)+".sensitivity", nil)
	if err != nil {
		return err
	}
	if t.division.isPlanning() {
		return t.division.measure(c.Context, t, w, listed{model: model}, "sensitivity", nil, &v)
	}
	s.Journal = r
	found, err := tune.Sensitivity(c.Context, s)
	if t.division.isWorker() {
		if _, elsewhere := ir.ElsewhereIn(err); err == nil || elsewhere {
			return nil // the others have the rest, which is printed in the end
		}
	}
	if err = errors.Join(err, r.leave(c.Context, err)); err != nil {
		return fmt.Errorf("%s: %w", model, err)
	}
	print := mcli.Sensitivity
	if t.json {
		print = mcli.SensitivityJSON
		t.warnLeftOut(c.Command.Name, model, found)
	}
	return print(t.stdout, t.style(), model, found)
}

// run searches methods for each model and compresses it, or prints the sensitivities.
func (a *automatic) run(c *cli.Context, t *tool, o *mcli.MethodOptions, models []string, w *writing, test testSet) error {
	if err := w.proving.adopt(o.Given(), testSet{}); err != nil {
		return err
	}
	v, err := w.proving.verification(t)
	if err != nil {
		return err
	}
	temporary, err := atomicfile.NewFolder("")
	if err != nil {
		return err
	}
	defer temporary.Close()
	dir := temporary.Path
	if a.sensitivity {
		for _, name := range listFlags {
			if c.IsSet(name) {
				return usagef("--sensitivity and --%s exclude each other", name)
			}
		}
		if err := onlyFiles("--sensitivity", models); err != nil {
			return err
		}
		return a.sensitivities(c, t, dir, o, models, v, w)
	}
	if err := w.proving.adopt(o.Given(), test); err != nil {
		return err
	}
	if s := &w.proving.sampling; s.data == "" && s.samples == 0 {
		s.samples = tune.RandomSamples // the result is verified on the samples of the search
	}
	w.choose = a.chooser(t, c.Command.Name, dir, o, v, w.gates)
	return w.compress(c, t, models, "auto", nil)
}
