package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// Options are the options of compressing one model. The zero value with an Input copies the model.
type Options struct {
	Input  string                     // path of the model; its name in messages if Source is set
	Source func() (*onnx.File, error) // opens a model that is not a file on disk; may be nil, and is called several times
	// files with digests among which those of the model are, for Done; nil if they are not known
	SourceFiles []report.File
	SourceCheck SourceCheck // for Done; may be nil
	Output      string      // empty for Name.Label.onnx next to the input
	Folder      []string    // the models of this call, if the files next to the model are copied with it; nil if not
	Label       string      // the method's or recipe's name, part of default file names
	Steps       []pass.Options
	Recipe      *report.Recipe // recorded for the steps; nil for that of the steps, with the digests of their inputs

	Request string // SHA-256 of all options and inputs but the source, by which Done recognizes a result; empty for none

	Version string        // in reports and in the metadata of the output; empty for that of this module
	Workers int           // 0 for one per CPU
	Memory  int64         // bytes for running recipes; 0 for 128 MiB
	Limits  memory.Limits // of a run of the model
	Digest  bool          // SHA-256 of inputs and outputs
	Sync    bool
	DryRun  bool
	KeepIR  bool
	Strip   bool // write no doc strings and metadata but those of the model itself: see onnx.LayoutOptions

	DataSuffix string // of the name of a data file: see onnx.LayoutOptions
	DataFiles  int    // likewise
	MustChange bool   // a result without changed weights is the error Unchanged

	Dims map[string]int64 // sizes of dynamic axes of the source by name: another name is an error, whatever is run

	Verify *Verification // nil for none
	Search *pass.Search  // how the steps were chosen; nil if they were given
	Target *pass.Target  // runtimes and CPU of the result; nil for the default
	Hints  []string      // of the steps, for the report

	Baseline *report.Baseline // of gates; nil for none

	Gates     []report.Limit
	Errors    bool     // measure the error of each weight for the report
	Reports   []string // names of report.Formats to write
	Card      report.Card
	ReportDir string // empty for the output's folder
	ExportDir string // sparse weights as .npz; empty for none

	Journal       ir.Journal // of long computations; nil for none
	ManyProcesses bool       // the journal divides the run between processes
	Worker        bool       // of those this one publishes nothing
	SourceDigest  *Digest    // of the source, if others need it too; nil if not

	Progress func(done, total int64)
	// the process does nothing else, and its memory may be limited to what a training plans
	Exclusive        bool
	TrainingProgress func(pass.Progress) // after each step of training, and once more after its end
}

// SourceCheck reports whether the source is that of the report at a path, without reading it. False if that is not
// known.
type SourceCheck func(ctx context.Context, report string) (bool, error)

// A Result is the result of compressing one model.
type Result struct {
	Input     string
	Output    string        // empty after a dry run
	Rejected  bool          // a gate did not hold
	NotRun    string        // why verification was skipped; empty if it was not
	Parts     []report.File // the data files that a worker has written, instead of an output
	Reports   []string
	Report    *report.Report
	RunMemory int64 // bytes of the verification besides the program, of a dry run that is divided
	Done      bool  // an earlier run made it, see Done
}

// Unchanged is the error of a result that must change and does not: the steps support none of the weights, or do
// not make the file smaller.
type Unchanged struct {
	Input string
	Steps []pass.Options
}

// Error names the model and the methods.
func (e *Unchanged) Error() string {
	var names []string
	for _, s := range e.Steps {
		names = append(names, s.Method().Name)
	}
	return fmt.Sprintf("%s: %s changes none of the weights, or makes the file no smaller", e.Input,
		strings.Join(names, " and "))
}

// Run compresses a model. After an error there is no output, and existing files are unchanged. A gate that does not
// hold is not an error: the output is saved as NAME.rejected.onnx.
func Run(ctx context.Context, o Options) (*Result, error) {
	o.setDefaults()
	if err := o.setOutputPath(); err != nil {
		return nil, err
	}
	if err := checkSteps(o.Steps, o.Target); err != nil {
		return nil, err
	}
	if err := o.numberClasses(); err != nil {
		return nil, err
	}
	restore, err := o.boundMemory()
	if err != nil {
		return nil, err
	}
	defer restore()
	precheck, left := o.DryRun, map[string]pass.Reason{}
	res, err := o.attempt(ctx, precheck, left)
	for unfit := (*pass.Unfit)(nil); errors.As(err, &unfit); res, err = o.attempt(ctx, precheck, left) {
		// The values of a weight exclude a method, which is known only once they are read. Such
		// models are rare: the second run reads every weight before it chooses, and later ones leave out one weight each.
		if _, again := left[unfit.Tensor]; again {
			break
		}
		if precheck {
			left[unfit.Tensor] = unfit.Reason
		}
		precheck = true
	}
	if err != nil {
		return nil, withPath(o.Input, err)
	}
	return res, nil
}

// setDefaults fills in zero values.
func (o *Options) setDefaults() {
	if o.Version == "" {
		o.Version = Version()
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Memory <= 0 {
		o.Memory = 128 << 20
	}
}

// checkSteps reports invalid steps before a model is opened.
func checkSteps(steps []pass.Options, target *pass.Target) error {
	for i, s := range steps {
		if err := pass.CheckStep(s); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if err := target.Check(steps); err != nil {
		return err
	}
	return pass.CheckOrder(steps)
}

// A run is one attempt at a job.
type run struct {
	*Options
	observe        func() *report.Environment
	eval           *ir.Eval
	set            *atomicfile.Set // the files of the result, published together
	source         *onnx.File      // never rewritten
	work           *onnx.File      // rewritten by the passes
	digests        *fileDigests    // digests of the source
	others         []*onnx.File    // models opened for passes, such as a teacher
	recipe         *report.Recipe
	rows           []pass.Row
	trainings      []pass.Training
	times          []report.TrainingTime
	layers         []pass.RemovedLayers
	config         []pass.ConfigValue
	data           []report.Data
	teachers       []report.Model
	referenceModel *referenceModel // with the result instead of the source; nil for the source
	changed        bool
	folder         *folder.Folder // nil if only the model is written
	path           string         // of the output

	verification *verification.Result // nil until the output has been run
}

func (o *Options) attempt(ctx context.Context, precheck bool, left map[string]pass.Reason) (_ *Result, err error) {
	r := &run{Options: o, observe: report.Observe(o.Workers), set: &atomicfile.Set{Sync: o.Sync}, path: o.Output}
	defer func() {
		if changed := r.unchanged(); err != nil && changed != nil {
			err = changed
		}
		err = errors.Join(err, r.close())
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Opening comes first: the output gets the access rights of the source's files.
	if err := r.openSource(ctx); err != nil {
		return nil, err
	}
	if err := dataset.CheckDims(dataset.Inputs(r.source.Model.Graph), o.Dims); err != nil {
		return nil, err
	}
	if err := r.prepareOutput(); err != nil {
		return nil, err
	}
	if o.SourceDigest != nil && o.Digest {
		r.digests = &o.SourceDigest.fileDigests
		r.digests.start(o.SourceDigest.ctx(), o.SourceDigest.file)
	} else {
		var divided ir.Journal
		if o.ManyProcesses {
			divided = o.Journal
		}
		r.digests = startDigests(ctx, r.source, o.Digest, divided)
		defer r.digests.wait()
	}
	// Deferred calls run in reverse: this one ends the digests early, before the wait for them.
	defer cancel()
	if err := r.runPasses(ctx, precheck, left); err != nil {
		return nil, err
	}
	// All sizes are known from here on, before a payload is read.
	plan := r.planOutput()
	if o.MustChange && !r.changed {
		return nil, &Unchanged{Input: o.Input, Steps: o.Steps}
	}
	if err := r.guardInput(plan); err != nil {
		return nil, err
	}
	// Gates on files are evaluated on the plan, so that a result that they reject is written once, under its other
	// name. The size of a packed file is known only when it is written.
	if o.DryRun || len(o.Gates) > 0 && !isPacked(o.Output) {
		planned, err := r.evaluateGates(ctx, plan, plannedFiles(plan, r.path))
		if err != nil || o.DryRun {
			res := &Result{Input: o.Input, Report: planned, Rejected: planned != nil && !planned.Passed()}
			if err == nil && o.ManyProcesses {
				res.RunMemory, err = r.minimumMemory(ctx)
			}
			return res, err
		}
		if !planned.Passed() {
			r.path = rejectedPath(o.Output)
			plan = r.planOutput() // the data file's name is part of the model
		}
	}
	res, err := r.stageFiles(ctx, plan)
	// A gate on runs did not hold, which is known once the files are written; they are written again, as the model has the
	// name of its data file.
	if errors.Is(err, errRejected) {
		r.path = rejectedPath(o.Output)
		res, err = r.stageFiles(ctx, r.planOutput())
	}
	if err != nil || o.Worker {
		return res, err
	}
	return res, r.publish(ctx)
}

// openSource opens the source twice: one copy is kept unchanged for the report.
func (r *run) openSource(ctx context.Context) (err error) {
	open := r.Source
	if open == nil {
		open = func() (*onnx.File, error) { return onnx.OpenContext(ctx, r.Input) }
	}
	if r.source, err = open(); err != nil {
		return err
	}
	r.work, err = open()
	return err
}

// models are those that are open, or nil.
func (r *run) models() []*onnx.File { return append([]*onnx.File{r.source, r.work}, r.others...) }

// unchanged returns an error if a model that the run reads was written meanwhile.
func (r *run) unchanged() error { return unchanged(r.models()...) }

func (r *run) close() error {
	var errs []error
	for _, f := range r.models() {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if r.eval != nil {
		errs = append(errs, r.eval.Close())
	}
	return errors.Join(append(errs, r.set.Close())...)
}

// prepareOutput prepares the output, so that one that cannot be written is an error before the work.
func (r *run) prepareOutput() (err error) {
	dir := filepath.Dir(r.Output)
	sources := r.source.Paths()
	if r.Folder != nil {
		if r.folder, err = folder.Open(r.Input, r.Output, r.Folder); err != nil {
			return err
		}
		if r.folder != nil {
			sources = append(sources, r.folder.Paths()...)
		}
	}
	if !r.DryRun {
		if err := atomicfile.Check(r.Output); err != nil {
			return err
		}
		if r.Source == nil {
			if r.set.Access, err = atomicfile.Like(sources...); err != nil {
				return err
			}
		}
		if dir, err = r.set.Folder(r.Output); err != nil {
			return err
		}
	}
	r.eval = ir.NewEval(dir)
	return nil
}

// openModel opens another model for a pass, such as a teacher.
func (r *run) openModel(ctx context.Context, path string) (*ir.Model, error) {
	f, err := remote.OpenModel(ctx, path)
	if err != nil {
		return nil, withPath(path, err)
	}
	r.others = append(r.others, f)
	return f.Model, nil
}

// writeFile writes a file that a pass has besides the model.
func (r *run) writeFile(path string, content []byte) error {
	return r.set.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func (r *run) runPasses(ctx context.Context, precheck bool, left map[string]pass.Reason) (err error) {
	env := pass.Environment{
		Workers: r.Workers, Limits: r.Limits, Target: r.Target, Precheck: precheck, Unfit: left, KeepIR: r.KeepIR,
		DryRun: r.DryRun, Searched: r.Search != nil,
		Source: r.source.Model, Journal: r.Journal, Open: func(path string) (*ir.Model, error) {
			return r.openModel(ctx, path)
		}, WriteFile: r.writeFile, DedicatedProcess: r.Exclusive, MinimumMemory: r.minimumMemory,
		OnProgress: r.recordProgress,
	}
	res, err := pass.Run(ctx, r.work.Model, r.eval, env, r.Steps)
	if err != nil {
		return err
	}
	if r.Exclusive && len(res.Trainings) > 0 {
		memory.Collect() // otherwise the arrays of a training would be in memory until the heap has twice their size
	}
	r.rows, r.trainings, r.layers, r.config, r.changed = res.Rows, res.Trainings, res.Layers, res.Config, res.Changed()
	if r.recipe, err = r.Options.recipe(ctx, res.Steps); err != nil {
		return err
	}
	return r.recordInputs(ctx, res.Data)
}

// recordProgress records the times of a training that ended.
func (r *run) recordProgress(p pass.Progress) {
	if p.Done {
		r.times = append(r.times, report.TimeOf(p))
	}
	if r.TrainingProgress != nil {
		r.TrainingProgress(p)
	}
}

// environment is the one of the run so far.
func (r *run) environment() *report.Environment {
	e := r.observe()
	e.Training = r.times
	return e
}

// planOutput plans the output. If nothing changed, or if a method that shrinks models would not make the file smaller,
// the source is copied, without its metadata if that is to be stripped. A target that does not load its IR version
// takes the larger file.
func (r *run) planOutput() *onnx.Plan {
	name := modelName(r.path)
	o := onnx.LayoutOptions{External: r.source.External(), Strip: r.Strip, DataSuffix: r.DataSuffix,
		DataFiles: r.DataFiles}
	unchanged := r.source.Same(name)
	if r.source.External() || r.DataFiles > 0 || r.Strip && r.source.Metadata() > 0 {
		unchanged = onnx.Layout(r.source.Model, name, o)
	}
	if r.changed {
		r.provenance()
		p := onnx.Layout(r.work.Model, name, o)
		if p.Size() < unchanged.Size() || !r.shrinks() || r.work.Model.IRVersion < r.source.Model.IRVersion {
			return p
		}
		r.revertRows(p.Size(), unchanged.Size())
	}
	return unchanged
}

// shrinks reports whether the purpose of some step is a smaller file.
func (r *run) shrinks() bool {
	for _, s := range r.Steps {
		if s.Method().Shrinks {
			return true
		}
	}
	return false
}

// revertRows turns the changed rows of the ledger into skipped ones, as the rewritten model is not saved. Rows of
// tensors that those made go: they are in no model, and the weights that they were made of have rows.
func (r *run) revertRows(size, unchanged int64) {
	// The source is saved, in which no layer is removed and whose configuration fits.
	r.changed, r.layers, r.config = false, nil, nil
	own, made := map[*ir.Tensor]bool{}, map[*ir.Tensor]bool{}
	var kept []pass.Row
	for _, row := range r.rows {
		changed := row.Status == pass.Changed
		if !made[row.Before] {
			own[row.Before] = true
		}
		for _, p := range row.After {
			if changed && !own[p.Tensor] { // equal weights may become one of them
				made[p.Tensor] = true
			}
		}
		if made[row.Before] {
			continue
		}
		if changed {
			row = pass.Row{
				Method: row.Method, Tensor: row.Tensor, Scope: row.Scope, Consumers: row.Consumers, Module: row.Module,
				Before: row.Before, Counted: row.Counted,
				Reason: pass.Reason{Code: pass.FileLarger, Detail: fmt.Sprintf("%d bytes → %d bytes", unchanged, size)},
			}
		}
		kept = append(kept, row)
	}
	r.rows = kept
}
