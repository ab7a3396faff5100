package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// Options say what is wanted.
type Options struct {
	Input      string
	Candidates []Candidate    // in the order in which their steps may stand in a recipe
	Prefix     []pass.Options // that come first whatever is chosen

	Data   job.Data
	Scores string         // the output with classes or scores; empty for the first that can be one
	Gates  []report.Limit // on what running the model says; at least one, or Bytes
	Bytes  int64          // the file is to take at most; 0 for the smallest that holds the gates

	Dir     string // for temporary files
	Workers int
	Memory  int64                            // bytes for a model's weights
	Tell    func(done, all int, what string) // of runs; may be nil
}

// A Candidate is a way to store weights.
type Candidate struct {
	Name string
	// Step takes the weights that only names. What a first step finds out about the whole model later ones may go by, as long as they are tried.
	// While they are tried, they look at calibrate samples of the data; 0 is for as many as they want.
	Step func(only pass.Globs, phase Phase, calibrate int) (pass.Options, error)
}

// A Phase is when a step runs.
type Phase uint8

// The phases of a search.
const (
	First     Phase = iota // on the whole model, before all others
	Measuring              // on one weight
	Trying                 // on many
	Final                  // the step goes into the recipe
)

// A tuner holds the source while it is compared with what becomes of it.
type tuner struct {
	Options
	source     *onnx.File
	answers    *remembered  // of the source, to all samples
	perRun     int64        // bytes, by a run of the source
	atOnce     int          // runs that go on at once, of one worker each; or 1, of all of them
	few        []int        // runs that damage is measured on
	calibrate  int          // samples that candidates look at while they are tried; 0 for as many as they want
	seen       map[int]bool // those samples
	fewAnswers *remembered
	set        *dataset.Set
	runs       int // done
	all        int // planned
	search     pass.Search
	missed     []report.Gate // of the last trial that did not hold them
	opset      int64         // the highest that a candidate needs
	best       choice        // nil before one held the gates
	failed     []choice
}

// Sensitivity measures what each candidate does to each weight, and chooses nothing.
func Sensitivity(ctx context.Context, o Options) (*pass.Search, error) {
	t, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = t.layers(ctx, false)
	return &t.search, errors.Join(err, t.close())
}

// Choose finds the steps that make the smallest file which holds the gates, or with Bytes the least damaged one of that size. The same input gives
// the same steps, at any number of workers.
func Choose(ctx context.Context, o Options) ([]pass.Options, *pass.Search, error) {
	t, err := open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	steps, err := t.choose(ctx)
	return steps, &t.search, errors.Join(err, t.close())
}

func open(ctx context.Context, o Options) (*tuner, error) {
	source, err := onnx.Open(o.Input)
	if err != nil {
		return nil, err
	}
	t := &tuner{Options: o, source: source, atOnce: 1}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// prepare opens the data, and the source to run it.
func (t *tuner) prepare(ctx context.Context) (err error) {
	if t.set, err = t.Data.Open(t.source.Model, madeUp); err != nil {
		return err
	}
	if !t.set.Labelled() && slices.ContainsFunc(t.Gates, func(g report.Limit) bool { return g.Name == accuracyGate }) {
		return errors.New("--max-accuracy-drop needs labels, and the data has none: name them by --labels")
	}
	s, err := t.session(ctx, t.source.Model)
	if err != nil {
		return err
	}
	room := max(t.Memory, leastRemembered)
	t.answers, t.fewAnswers = &remembered{Session: s, room: room}, &remembered{Session: s, room: room}
	t.calibrate, t.seen = shown(t.set, t.Data)
	arena := int64(0)
	t.perRun, arena, err = t.makes(ctx, s)
	if workers := int64(t.Workers); t.perRun > 0 && arena*workers <= t.Memory/arenas {
		t.atOnce = max(1, t.Workers)
	}
	return err
}

// arenas is the part of the memory that what runs at once works on may take.
const arenas = 4

// madeUp is how many samples are made up where there are no data.
const madeUp = 8

func (t *tuner) close() error {
	var errs []error
	if t.answers != nil {
		errs = append(errs, t.answers.Close())
	}
	if t.set != nil {
		errs = append(errs, t.set.Close())
	}
	return errors.Join(append(errs, t.source.Close())...)
}

// makes are the bytes that a run of s makes, and those that it works on at a time; 0 where that follows from values.
func (t *tuner) makes(ctx context.Context, s *engine.Interpreter) (made, arena int64, err error) {
	for b, err := range t.set.Batches(ctx, dataset.Order{Size: t.batch()}) {
		if err != nil {
			return 0, 0, err
		}
		in := map[string]ir.Spec{}
		for name, a := range verify.InputsOf(s, b.Inputs) {
			if a.Kind != ir.Dense {
				return 0, 0, nil
			}
			in[name] = a.Spec()
		}
		u, err := s.Usage(in)
		if err != nil {
			return 0, 0, nil // what cannot be planned is found out by running
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

func (t *tuner) session(ctx context.Context, m *ir.Model) (*engine.Interpreter, error) {
	return engine.Open(ctx, m, engine.Options{Workers: t.Workers / t.atOnce, MemoryLimit: t.Memory})
}

func (t *tuner) tell(what string) {
	if t.runs++; t.Tell != nil {
		t.Tell(t.runs, max(t.all, t.runs), what)
	}
}

// A built is the model after some steps, in memory: payloads are computed when they are read.
type built struct {
	*onnx.File
	rows    []pass.Row
	eval    *ir.Eval
	tensors map[*ir.Tensor]string // of the source
}

// build runs steps over the source.
func (t *tuner) build(ctx context.Context, steps []pass.Options) (_ *built, err error) {
	b := &built{eval: ir.NewEval(t.Dir)}
	if b.File, err = onnx.Open(t.Input); err != nil {
		return nil, err
	}
	b.tensors = tensorsOf(b.Model)
	c := &pass.Context{
		Context: ctx, Model: b.Model, Eval: b.eval, Workers: t.Workers, Memory: t.Memory, Precheck: true, Source: t.source.Model,
		Open: func(path string) (*ir.Model, error) {
			return nil, fmt.Errorf("%s: a search opens no other models", path)
		},
	}
	if b.rows, err = pass.Run(c, steps); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *built) close() error { return errors.Join(b.File.Close(), b.eval.Close()) }

// size is the bytes of the files that b would be written to.
func (b *built) size() int64 { return onnx.Layout(b.Model, "model.onnx", b.External()).Size() }
