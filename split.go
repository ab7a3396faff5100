package mcompress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/internal/pipeline"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	results "github.com/mcompress/mcompress/report/partition"
)

// SplitOptions are the options of PlanStages and Split. The zero value is two stages with weights of much the same
// size. An option that a function does not use is an error.
type SplitOptions struct {
	Stages  int              // pipeline stages, 2 by default
	Balance string           // what is balanced between them: one of Balances, the first by default
	Batch   int64            // size of dynamic batch axes, 1 by default
	Dims    map[string]int64 // sizes of other dynamic axes by name

	// Measure, of PlanStages, runs the stages of a model on disk one after the other, and measures their time.
	Measure bool

	// Ranks, of Split, writes tensor-parallel shards for this number of ranks, at least 2, instead of stages.
	Ranks     int
	NoDigests bool // without digests of the files in the manifest
	NoSync    bool // without fsync

	Limits   Limits
	Progress func(done, total int64) // bytes of weights; may be nil
}

// Balances are the values of SplitOptions.Balance: what is balanced between stages.
func Balances() []string { return partition.Costs() }

// options returns those of a partition, or names a field that is not valid.
func (o SplitOptions) options() (partition.Options, error) {
	p := partition.Options{
		Stages: cmp.Or(o.Stages, 2), By: cmp.Or(o.Balance, Balances()[0]), Batch: o.Batch, Dims: o.Dims,
	}
	switch {
	case p.Stages < 1:
		return p, fieldErrorf("{Stages} %d: must be a positive number", o.Stages)
	case !slices.Contains(Balances(), p.By):
		return p, fieldErrorf("{Balance} %q: there are %s", p.By, strings.Join(Balances(), ", "))
	case o.Batch < 0:
		return p, fieldErrorf("{Batch} %d: must be a positive number", o.Batch)
	case o.Ranks < 0 || o.Ranks == 1:
		return p, fieldErrorf("{Ranks} %d: must be 2 or more", o.Ranks)
	case o.Ranks > 0 && (o.Stages != 0 || o.Balance != "" || o.Batch != 0 || len(o.Dims) > 0):
		return p, fieldErrorf("{Ranks} excludes {Stages}, {Balance}, {Batch} and {Dims}")
	}
	return p, o.Limits.check()
}

// PlanStages plans pipeline stages of the model at a path or URL without reading its weights, unless they are measured.
func PlanStages(ctx context.Context, path string, o SplitOptions) (*results.Plan, error) {
	options, err := o.options()
	switch {
	case err != nil:
		return nil, err
	case o.Ranks > 0:
		return nil, fieldErrorf("{Ranks} is of Split: a plan lists the weights that can be divided over the stages")
	}
	m, err := OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	plan, err := partition.New(ctx, m.file.Model, options)
	if err == nil && o.Measure {
		err = plan.Measure(ctx, m.file.Path, options, o.Limits.threads(), o.Limits.run())
	}
	if err != nil {
		return nil, withModel(m.file.Path, err)
	}
	return plan.Plan, nil
}

// Split writes the pipeline stages or tensor-parallel shards of the model at a path into a folder, which is made, with
// a manifest of the values between them. All files appear together when all are complete, with memory that does not
// depend on the size of weights.
func Split(ctx context.Context, path, folder string, o SplitOptions) (*results.Split, error) {
	options, err := o.options()
	switch {
	case err != nil:
		return nil, err
	case o.Measure:
		return nil, fieldErrorf("{Measure} is of PlanStages")
	}
	undo, err := atomicfile.MakeDir(folder)
	if err != nil {
		return nil, err
	}
	defer undo()
	eval := ir.NewEval(folder)
	defer eval.Close()
	save := onnx.SaveOptions{
		Workers: o.Limits.threads(), Memory: o.Limits.recipes(), Digest: !o.NoDigests, Sync: !o.NoSync,
		Eval: eval, Progress: o.Progress,
	}
	if o.Ranks > 0 {
		return partition.WriteShards(ctx, path, folder, o.Ranks, save)
	}
	return partition.Write(ctx, path, folder, options, save)
}

// A SplitRun runs the stages or shards of a model, and compares them with the whole model on the same samples: those of
// stages have the same bits, sums over ranks are rounded differently.
type SplitRun struct {
	Data    Data // random samples without a path
	Samples int  // of random ones; 0 for 8
	Batch   int  // samples of a run; 0 for 1
	Seed    uint64

	// Piped runs as many samples at the same time as there are stages, instead of one after the other.
	Piped bool

	// Program starts a process for each stage or rank: a program with arguments that calls ServeStage, such as
	// []string{"mcompress", StageCommand}. Without it they run in this process.
	Program []string

	Limits Limits // of the whole model and of each device
}

// The values of partition.Run.Mode.
const (
	RunSequential = "sequential"
	RunPiped      = "piped"
)

// Check names a field that is not valid. It opens no data.
func (r SplitRun) Check() error {
	if err := CheckData(r.Data); err != nil {
		return err
	}
	if _, err := r.options(); err != nil {
		return err
	}
	return r.Limits.check()
}

// options are those of the data.
func (r SplitRun) options() (dataset.Options, error) {
	o, err := (&dataset.Source{Samples: r.Data}).Options(r.Limits.Workers)
	if err != nil {
		err = &pass.OptionError{Err: err}
	}
	return o, err
}

// Compare runs the files of a manifest that Split wrote, and the model at a path.
func (r SplitRun) Compare(ctx context.Context, path, manifest string) (_ *results.Run, err error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	data, err := r.options()
	if err != nil {
		return nil, err
	}
	o := pipeline.Options{Workers: r.Limits.threads(), Limits: r.Limits.run(), Exact: true}
	if len(r.Program) > 0 {
		o.Start = func(ctx context.Context, s pipeline.Settings) (pipeline.Device, error) {
			return pipeline.Start(ctx, s, r.Program[0], r.Program[1:]...)
		}
	}
	p, err := pipeline.Open(ctx, manifest, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	done, concurrent := &results.Run{Mode: RunSequential}, 1
	if r.Piped {
		done.Mode, concurrent = RunPiped, len(p.Stats())
	}
	v := job.Verification{
		Data:    job.Data{Path: r.Data.Path, Seed: r.Seed, Samples: r.Samples, Batch: r.Batch, Options: data},
		Backend: job.Backend{Workers: r.Limits.Workers, Limits: r.Limits.run()}, Digest: true,
	}
	done.Verification, err = v.CompareSession(ctx, f, p, concurrent)
	done.Devices = p.Stats()
	return done, err
}

// StageCommand is the argument of the program mcompress that calls ServeStage.
const StageCommand = "__stage"

// ServeStage runs the files of one stage or rank for SplitRun.Program: it answers requests on in, until it ends, on
// out. It ends with its parent, and not with ctx, as signals to a group of processes are for the parent.
func ServeStage(ctx context.Context, in io.Reader, out io.Writer) error {
	return pipeline.Serve(context.WithoutCancel(ctx), in, out)
}
