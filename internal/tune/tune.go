package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// Options are the parameters of a search.
type Options struct {
	Input      string
	Candidates []Candidate    // in the order of their steps in a recipe
	Prefix     []pass.Options // first steps, independent of the choice

	Data   job.Data
	Scores string         // output of classes or scores; empty for the first suitable one
	Metric metric.Measure // besides accuracy; nil for none
	Gates  []report.Limit // on verification results; at least one, or Bytes
	Bytes  int64          // maximum file size; 0 for the smallest model that holds the gates

	Target *pass.Target // of the result; nil for the default

	Journal  ir.Journal         // of measurements and trials; nil for none
	Dir      string             // folder of temporary files
	Result   string             // path of the result, in whose files its name may be
	Layout   onnx.LayoutOptions // of the result
	Workers  int
	Memory   int64                            // bytes for cached values
	Limits   memory.Limits                    // of each session
	Progress func(done, all int, what string) // of runs; may be nil
}

// A Candidate is a method with its options.
type Candidate struct {
	Name string
	// Step is the step for the weights that only matches, with calibrate calibration samples; 0 for the method's default.
	// During the search it may reuse the results of its First phase on the whole model.
	Step func(only pass.Globs, phase Phase, calibrate int) (pass.Options, error)
}

// A Phase is the phase of the search in which a step runs.
type Phase uint8

// The phases of a search.
const (
	First     Phase = iota // on the whole model, before the other phases
	Measuring              // on one weight, for its sensitivity
	Trying                 // on a combination
	Final                  // in the final recipe
)

// A tuner is a search with the open source model.
type tuner struct {
	Options
	source             *onnx.File
	outputs            *cachedSession // outputs of the source for all samples
	perRun             int64          // bytes per run of the source
	concurrent         int            // concurrent runs of one worker each; or 1 run with all workers
	sensitivityRuns    []int          // runs for sensitivities
	calibrate          int            // calibration samples of candidates; 0 for their default
	calibration        map[int]bool   // indices of the calibration samples
	sensitivityOutputs *cachedSession
	set                *dataset.Set
	runs               int // number done
	all                int // number planned
	search             pass.Search
	missedGates        []report.Gate // gates missed by the last failed trial
	opset              int64         // highest opset that a candidate needs
	tries              int           // calls of try
	best               choice        // nil until one holds the gates
	failed             []choice
	screen             *screen // nil for none
}

// Sensitivity measures the sensitivity to each candidate for each weight, without a choice.
func Sensitivity(ctx context.Context, o Options) (*pass.Search, error) {
	t, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = t.layers(ctx, false)
	return &t.search, errors.Join(err, t.close())
}

// Choose returns the steps of the smallest model that holds the gates, or with Bytes of the least sensitive one within
// that size. The result is deterministic for any number of workers.
func Choose(ctx context.Context, o Options) ([]pass.Options, *pass.Search, error) {
	t, err := open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	steps, err := t.choose(ctx)
	return steps, &t.search, errors.Join(err, t.close())
}

func open(ctx context.Context, o Options) (*tuner, error) {
	source, err := remote.OpenModel(ctx, o.Input)
	if err != nil {
		return nil, err
	}
	t := &tuner{Options: o, source: source, concurrent: 1}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// prepare opens the data and the source.
func (t *tuner) prepare(ctx context.Context) (err error) {
	if t.Data.Samples == 0 {
		t.Data.Samples = RandomSamples
	}
	if t.set, err = t.Data.Open(t.source.Model, t.Data.Samples); err != nil {
		return err
	}
	if !t.set.Labelled() && slices.ContainsFunc(t.Gates, func(g report.Limit) bool { return g.Name == accuracyGate }) {
		// At once, and not after minutes of search.
		return errors.New("--max-accuracy-drop requires labels; name them with --labels")
	}
	s, err := t.session(ctx, t.source.Model)
	if err != nil {
		return err
	}
	size := max(t.Memory, minCache)
	t.outputs, t.sensitivityOutputs = &cachedSession{Interpreter: s, free: size},
		&cachedSession{Interpreter: s, free: size}
	// The result is calibrated on the same samples as its trials, and so is the model whose gates were evaluated:
	// calibrated on all of them, static-int8 of magika missed a drop of one point that its trial held.
	t.calibrate, t.calibration = calibrationSamples(t.set, t.Data)
	if t.Bytes == 0 {
		t.screen = newScreen(t.set, t.Gates)
	}
	arena := int64(0)
	t.perRun, arena, err = t.activationBytes(ctx, s)
	// Several runs of one worker each take less time than one run of several, which wait for one another; but each
	// needs an arena.
	if workers := int64(t.Workers); t.perRun > 0 && arena*workers <= t.Memory/arenas {
		t.concurrent = max(1, t.Workers)
	}
	return err
}

// arenas is the divisor of the memory limit for the arenas of concurrent runs.
const arenas = 4

// RandomSamples is the default number of random samples where there is no data. The result is to be verified on the
// same number, which are then the same samples.
const RandomSamples = 8

func (t *tuner) close() error {
	var errs []error
	if t.outputs != nil {
		errs = append(errs, t.outputs.Close())
	}
	if t.set != nil {
		errs = append(errs, t.set.Close())
	}
	return errors.Join(append(errs, t.source.Close())...)
}

// activationBytes are the bytes that a run of s computes, and the size of its arena; 0 if they depend on values.
func (t *tuner) activationBytes(ctx context.Context, s *engine.Interpreter) (made, arena int64, err error) {
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: t.batch()}) {
		if err != nil {
			return 0, 0, err
		}
		in := map[string]ir.Spec{}
		for name, a := range verify.InputsOf(s, b.Inputs) {
			if a.Kind != ir.Dense {
				return 0, 0, nil
			}
			// Planned without a run: sizes of all values follow from those of the inputs.
			in[name] = a.Spec()
		}
		u, err := s.Usage(in)
		if err != nil {
			return 0, 0, nil // sizes that cannot be planned are unknown before a run
		}
		for _, step := range u.Steps {
			for _, out := range step.Out {
				made += out.Bytes()
			}
		}
		return made, u.Plan.Size, nil
	}
	return 0, 0, errors.New("the data has no samples")
}

// session opens m with all workers, and runs it with those of one of the concurrent runs.
func (t *tuner) session(ctx context.Context, m *ir.Model) (*engine.Interpreter, error) {
	s, err := engine.Open(ctx, m, engine.Options{Workers: t.Workers, Limits: t.Limits})
	if err == nil {
		// Opened by all workers, which would wait for one of them otherwise.
		s.SetWorkers(t.Workers / t.concurrent)
	}
	return s, err
}

func (t *tuner) progress(what string) {
	if t.runs++; t.Progress != nil {
		t.Progress(t.runs, max(t.all, t.runs), what)
	}
}

// A builtModel is the model after some steps, in memory: payloads are computed when read.
type builtModel struct {
	*onnx.File
	rows    []pass.Row
	eval    *ir.Eval
	tensors map[*ir.Tensor]string // identity of the source's tensors
}

// build runs steps on the source.
func (t *tuner) build(ctx context.Context, steps []pass.Options) (_ *builtModel, err error) {
	b := &builtModel{eval: ir.NewEval(t.Dir)}
	// Opened anew for each model: steps rewrite the graph, and payloads are read from the file when they are needed.
	if b.File, err = remote.OpenModel(ctx, t.Input); err != nil {
		return nil, err
	}
	b.tensors = tensorsOf(b.Model)
	env := pass.Environment{
		// Precheck, as recipes run while a session opens: an *Unfit there would end the trial instead of skipping the
		// weight.
		Workers: t.Workers, Limits: t.Limits, Target: t.Target, Precheck: true, Source: t.source.Model,
		Open: func(path string) (*ir.Model, error) {
			return nil, fmt.Errorf("%s: other models are not supported in a search", path)
		},
	}
	res, err := pass.Run(ctx, b.Model, b.eval, env, steps)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.rows = res.Rows
	return b, nil
}

func (b *builtModel) close() error { return errors.Join(b.File.Close(), b.eval.Close()) }

// size is the size in bytes of the files of b as the result.
func (t *tuner) size(b *builtModel) int64 {
	o := t.Layout
	o.External = o.External || b.External()
	return job.Size(b.Model, cmp.Or(t.Result, "model.onnx"), o)
}
