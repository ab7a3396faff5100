package mcompress

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/naming"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// A Result is a compressed model.
type Result struct {
	Model    string         // as the request names it
	Output   string         // path or URL of the result, its name for RunTo; empty after a dry run
	Rejected bool           // a gate did not hold: the name of the output ends in .rejected.onnx
	NotRun   string         // why the output was not verified although it should have been; empty if it was
	Reports  []string       // paths of the written reports
	Warnings []string       // steps that should run in another order
	Report   *report.Report // sizes, the form and error of each weight, verification, gates
	UpToDate bool           // an earlier run of the same request made it: see List.IfChanged
}

// An Outcome is the result of a model of a request, or its error.
type Outcome struct {
	Model       string // without the query of a URL
	Variant     string // the dtype of transformers.js; "fp32" for the copy of the source, empty without Variants
	Result      *Result
	Err         error            // nil for a result that a gate rejects: see Error
	Alternative string           // what Request.Alternative gives, if that is much smaller; empty otherwise
	Pushed      *registry.Pushed // nil if it was not pushed
}

// Error is why there is no result that keeps the gates: Err, or a *RejectedError; nil if there is one.
func (o Outcome) Error() error {
	if o.Err == nil && o.Result.Rejected {
		return &RejectedError{o.Result}
	}
	return o.Err
}

// Compress compresses the model at path in and writes it to path out, atomically and with a data file next to it where
// the model needs one. Without steps it copies the model. It is Request.Run for the steps and options.
func Compress(ctx context.Context, in, out string, args ...Argument) (*Result, error) {
	r, err := requestOf(args)
	if err != nil {
		return nil, err
	}
	if out == "" && !r.DryRun {
		return nil, fieldErrorf("{Output} is empty")
	}
	r.Models, r.Output = []string{in}, out
	return r.Run(ctx)
}

// Run carries out a request for one model. After an error nothing is written, except for the result that a
// *RejectedError has. Errors about the content of the model are *onnx.FormatError; ExitCode classifies them all.
func (r Request) Run(ctx context.Context) (*Result, error) {
	r, err := r.expanded()
	switch {
	case err != nil:
		return nil, err
	case len(r.Models) > 1 || r.List.KeepPaths || r.List.Shard != "" || r.Variants != nil:
		return nil, fieldErrorf("RunAll is for several models, {List} and {Variants}")
	}
	outcomes, err := r.RunAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := outcomes[0].Error(); err != nil {
		return nil, err
	}
	return outcomes[0].Result, nil
}

// RunAll carries out a request for any number of models, one after the other, and returns their outcomes in order: with
// Variants those of each model, the source first. An error is one of the request, of an interruption, or of pushing the
// result; errors of models are in the outcomes.
func (r Request) RunAll(ctx context.Context) ([]Outcome, error) {
	r, err := r.Defaults().expanded() // before the check, of which some rules are about the number of models
	if err != nil {
		return nil, err
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	if err := r.checkGoal(); err != nil {
		return nil, err
	}
	x := &run{Request: r}
	if x.card, err = r.Reports.Card(); err != nil {
		return nil, err
	}
	if r.Variants != nil {
		return x.variants(ctx)
	}
	return x.all(ctx)
}

// A run is a request that is carried out, whose models have no patterns.
type run struct {
	Request
	steps    []pass.Options    // with the data of the request
	folder   []string          // the models, if Output is a folder
	verify   *job.Verification // nil for none
	dims     map[string]int64  // sizes of dynamic axes of the source, whether it is run or not
	baseline *report.Baseline  // nil for none
	card     report.Card
	digest   string // of the request, by which List.IfChanged recognizes results; empty without it
	identity string // of the program that measures, whose files are read for it

	search *search // finds the steps; nil if they are given
}

// expanded is the request with the files in place of patterns.
func (r Request) expanded() (Request, error) {
	if r.source != nil {
		return r, nil
	}
	models, err := fleet.Expand(r.Models)
	if err != nil {
		return r, fieldErrorf("%w", err)
	}
	r.Models = models
	return r, nil
}

// prepare checks what needs files or connections but no model, and sets what all models have in common.
func (x *run) prepare(ctx context.Context) (err error) {
	// Before withData, which passes it to steps that train. It reads the files of a program: once for all models.
	x.identity = x.Verification.commandIdentity(ctx)
	if x.steps, err = x.withData(x.Steps); err != nil {
		return err
	}
	if x.verify, err = x.verification(); err != nil {
		return err
	}
	options, err := x.dataOptions()
	if err != nil {
		return err
	}
	x.dims = options.Dims
	// Read once for all models: a registry may move the tag of a champion meanwhile.
	if x.baseline, err = x.loadBaseline(ctx); err != nil {
		return err
	}
	if x.Search != nil {
		// After verification, on whose samples it measures.
		if x.search, err = x.newSearch(); err != nil {
			return err
		}
	}
	return nil
}

// withData are steps with the data, the metric and the target of the request, where they have none of their own.
func (x *run) withData(steps []Step) ([]pass.Options, error) {
	list := make([]pass.Options, len(steps))
	for i, s := range steps {
		var err error
		if list[i], err = pass.Preset(s, pass.Group(&x.Data)); err != nil {
			return nil, err
		}
	}
	v := x.Verification
	// After the data: the evaluation of training has the metric of the verification, unless the step has its own.
	list = distill.WithMetric(list, v.Metric, v.Scores, v.evaluator(), x.identity)
	t, err := x.target()
	if err != nil {
		return nil, err
	}
	// Last: a target sets options that were not given, by steps or by fields of the request.
	_, err = t.Apply(list)
	return list, err
}

// all compresses each model.
func (x *run) all(ctx context.Context) (_ []Outcome, err error) {
	// Names before anything is opened: two results of one name are an error of the request.
	outs, err := x.outputs()
	if err != nil {
		return nil, err
	}
	if err := x.distinctReports(outs); err != nil {
		return nil, err
	}
	if err := x.prepare(ctx); err != nil {
		return nil, err
	}
	if x.search != nil {
		defer func() { err = errors.Join(err, x.search.close()) }()
	}
	// After prepare, which has the steps with their stages.
	if err := x.division.check(x); err != nil {
		return nil, err
	}
	// Credentials and tags of a registry are checked before hours of work, not after them.
	if err := x.checkDestination(ctx); err != nil {
		return nil, err
	}
	for _, text := range pass.Warnings(x.steps) {
		x.Events.warnText(text)
	}
	// After the checks of the whole request, so that all workers of a list fail in the same way, whatever their shard.
	mine, selected, err := x.pick(ctx, outs)
	if err != nil {
		return nil, err
	}
	if x.Output != "" && len(outs) > 0 && outs[0] != x.Output {
		x.folder = x.Models
		if !x.DryRun && !remote.Is(x.Output) {
			// Removed if it is empty at the end: a run whose models all failed leaves no folder.
			undo, err := atomicfile.MakeDir(x.Output)
			if err != nil {
				return nil, err
			}
			defer undo()
		}
	}
	// It reads the files that the request names: after all that may fail at once.
	if x.digest, err = x.recognized(ctx); err != nil {
		return nil, err
	}
	if x.Events.Selected != nil {
		if err := x.Events.Selected(selected); err != nil {
			return nil, err
		}
	}
	index, err := x.newIndex(selected)
	if err != nil {
		return nil, err
	}
	// Workers of a plan publish nothing, and have neither outcomes nor an index.
	if x.division.isWorker() || x.division.isPlanning() {
		mine[0].output = x.division.local(mine[0].output)
		_, err := x.compressed(ctx, mine[0], x.steps)
		return nil, err
	}
	var outcomes []Outcome
	for _, m := range mine {
		o := x.outcome(ctx, m)
		// The end of an interrupted run and not a result of the model: it is not in the index.
		if o.Err != nil && ctx.Err() != nil {
			return outcomes, o.Err
		}
		outcomes = append(outcomes, o)
		index.add(o)
		if x.Events.Outcome != nil {
			if err := x.Events.Outcome(o); err != nil {
				return outcomes, err
			}
		}
		if x.List.FailFast && o.Error() != nil {
			break
		}
	}
	// The index names models that were not reached (List.FailFast) as missing, so that a list is never complete by
	// mistake.
	if err := index.write(ctx, mine[len(outcomes):]); err != nil {
		return outcomes, &ConclusionError{err}
	}
	if x.Push == "" || len(outcomes) == 0 || outcomes[0].Error() != nil {
		return outcomes, nil
	}
	// A push is of one model (Check), whose files and reports are published.
	outcomes[0].Pushed, err = x.push(ctx, outcomes[0].Result.Output)
	return outcomes, err
}

// outputs are the paths of the results.
func (x *run) outputs() ([]string, error) {
	if x.source != nil {
		return []string{x.Output}, nil
	}
	of := naming.Outputs
	if x.List.KeepPaths && x.Output != "" {
		of = naming.OutputsBelow
	}
	outs, err := of(x.Models, x.Label, x.Output)
	if err != nil {
		return nil, fieldErrorf("%w", err)
	}
	return outs, nil
}

// distinctReports is an error if the reports of two results would have the same name in the folder of reports.
func (x *run) distinctReports(outs []string) error {
	if x.Reports.Dir == "" || len(x.Reports.Formats) == 0 {
		return nil
	}
	from := make(map[string]string, len(outs))
	for i, out := range outs {
		path := x.reportPath(out)
		if other, taken := from[path]; taken {
			return fieldErrorf("the reports of %s and %s would both become %s; without {Reports.Dir} they are in the "+
				"folders of the results", remote.Shown(other), remote.Shown(x.Models[i]), path)
		}
		from[path] = x.Models[i]
	}
	return nil
}

// reportPath is the path of the JSON report of a result.
func (x *run) reportPath(output string) string {
	return (&job.Options{ReportDir: x.Reports.Dir}).ReportPath(output, report.JSONSuffix)
}

// outcome compresses a model, unless its result is there.
func (x *run) outcome(ctx context.Context, m listed) Outcome {
	o := Outcome{Model: remote.Shown(m.model)}
	if remote.Is(m.output) {
		if job.SameFile(m.model, m.output) {
			o.Err = fieldErrorf("%s: the output is the input; name another file with {Output}", m.output)
			return o
		}
		s, err := x.stage(ctx, m.model, m.output)
		if err != nil {
			o.Err = err
			return o
		}
		defer s.leave()
		m.output, m.staged = s.path, s
	}
	if x.folder != nil && x.List.KeepPaths && !x.DryRun { // a folder of the list
		undo, err := atomicfile.MakeDir(filepath.Dir(m.output))
		if err != nil {
			o.Err = err
			return o
		}
		defer undo()
	}
	steps := x.steps
	if x.Events.Steps != nil {
		steps = x.Events.Steps(m.model, steps)
	}
	o.Result, o.Err = x.one(ctx, m, steps)
	if o.Err == nil && m.staged != nil && !x.DryRun {
		o.Err = m.staged.publish(ctx, x.division, m.model, o.Result)
	}
	if o.Result != nil && o.Result.NotRun != "" {
		x.Events.warnText(o.Result.Output + " was not run: " + o.Result.NotRun)
	}
	// After the result is published: it is a hint, and its dry run may fail.
	o.Alternative = x.better(ctx, m.model, m.output, o.Result)
	return o
}

// one compresses a model by the steps, or by those that a search finds, unless its result is there.
func (x *run) one(ctx context.Context, m listed, steps []pass.Options) (_ *Result, err error) {
	// Without the files: their digests suffice to recognize a result that is up to date.
	stored, err := x.stored(ctx, m.model)
	if err != nil {
		return nil, err
	}
	if x.List.IfChanged {
		if res, err := x.done(ctx, m, stored, steps); res != nil || err != nil {
			return res, err
		}
		if m.staged != nil {
			if res, err := x.uploadable(ctx, m); res != nil || err != nil {
				return res, err
			}
		}
	}
	if stored == nil {
		return x.compressed(ctx, m, steps)
	}
	// Only now, as a result that is there needs no download.
	p, err := x.pull(ctx, m, stored)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.leave(ctx, err)) }()
	res, err := x.compressed(ctx, listed{model: p.model, output: m.output}, steps)
	if err != nil {
		return nil, withModel(m.model, err)
	}
	res.Model = m.model
	return res, nil
}

// compressed compresses a file.
func (x *run) compressed(ctx context.Context, m listed, steps []pass.Options) (_ *Result, err error) {
	// The journal is opened before the search, whose measurements it keeps, too.
	var kept ir.Journal
	var source *job.Digest
	if !x.DryRun && x.source == nil {
		r, failed := x.resume(ctx, m.model, m.output, steps)
		if failed != nil {
			return nil, failed
		}
		kept, source = r, r.source
		defer func() { err = errors.Join(err, r.leave(ctx, err)) }()
	}
	if x.division.isPlanning() {
		return nil, x.division.measure(ctx, x, m, steps)
	}
	var found *pass.Search
	if x.search != nil {
		if steps, found, err = x.search.choose(ctx, m.model, m.output, kept); err != nil {
			return nil, withModel(m.model, err)
		}
	}
	o, err := x.job(ctx, m.model, m.output, steps)
	if err != nil {
		return nil, err
	}
	// The journal and the report need the digest of the source: it is computed once, by whichever needs it first.
	o.Journal, o.SourceDigest = kept, source
	o.ManyProcesses, o.Worker = x.division != nil, x.division.isWorker()
	o.Search, o.Verify, o.ExportDir, o.Folder, o.Request = found, x.verify, x.ExportDir, x.folder, x.digest
	shown := remote.Shown(m.model)
	var end func()
	o.Progress, end = x.Events.stage(shown, StageWrite)
	defer end()
	if f := x.Events.Progress; f != nil {
		o.TrainingProgress = func(p pass.Progress) {
			f(Progress{Model: shown, Stage: StageTrain, Done: int64(p.Step), Total: int64(p.Steps), Loss: p.Loss, Training: &p,
				Ended: p.Done})
		}
	}
	res, err := job.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Worker {
		x.division.parts = res.Parts
	}
	return resultOf(res, steps), nil
}

// resultOf is the public form of a result.
func resultOf(res *job.Result, steps []pass.Options) *Result {
	return &Result{
		Model: res.Input, Output: res.Output, Rejected: res.Rejected, NotRun: res.NotRun, Reports: res.Reports,
		Warnings: pass.Warnings(steps), Report: res.Report, UpToDate: res.Done,
	}
}

// job are the options for running steps on a model, with the options of the target set in the steps.
func (x *run) job(ctx context.Context, model, out string, steps []pass.Options) (o job.Options, err error) {
	o = job.Options{
		Input: model, Output: out, Label: x.Label, Steps: steps, Workers: x.Limits.Workers, Memory: x.Limits.recipes(),
		Limits: x.Limits.run(), Digest: !x.Reports.NoDigests, Sync: !x.NoSync, DryRun: x.DryRun,
		KeepIR: x.KeepIR, Strip: x.StripMetadata, Exclusive: true, Gates: x.Gates, Baseline: x.baseline,
		Errors: !x.Reports.NoErrors, Reports: x.Reports.Formats, ReportDir: x.Reports.Dir, Card: x.card,
		MustChange: x.mustChange, DataSuffix: x.dataSuffix, DataFiles: x.DataFiles, Source: x.source, Dims: x.dims,
	}
	if remote.Is(model) {
		o.Input = remote.Shown(model)
		o.Source = func() (*onnx.File, error) { return remote.OpenModel(ctx, model) }
	}
	t, err := x.target()
	if err == nil {
		o.Target, err = t.Apply(steps)
	}
	o.Hints = hints(steps, o.Target)
	return o, err
}

// saturation is about products of unsigned activations and full-range signed weights.
const saturation = "on x86 CPUs without VNNI, ONNX Runtime's products with full-range int8 weights may saturate; to " +
	"run the model there, use --target cpu-avx2, --reduce-range or --weight-type uint8"

// hints are limitations of the result at run time, which the report lists. With a target there are none, unless options
// override it.
func hints(steps []pass.Options, target *pass.Target) []string {
	if target != nil && !target.Overridden() {
		return nil
	}
	for _, s := range steps {
		integers := s.Method().Name == "dynamic-int8" || s.Method().Name == "static-int8"
		if integers && optionOf(s, "weight-type") == "int8" && optionOf(s, "reduce-range") == "false" {
			return []string{saturation}
		}
	}
	return nil
}

func optionOf(s pass.Options, name string) string {
	for _, o := range pass.Values(s) {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}

// better tells what the alternative step gives, by a dry run. An error of that is not one of the result.
func (x *run) better(ctx context.Context, model, out string, res *Result) string {
	if x.Alternative == nil || res == nil || x.List.KeepPaths || registry.IsReference(model) ||
		!needsAlternative(res.Report) {
		return ""
	}
	steps, err := x.withData([]Step{x.Alternative})
	if err != nil {
		return ""
	}
	other, err := x.trial(ctx, model, out, steps)
	if err != nil {
		return ""
	}
	return alternative(res.Report, other, x.Alternative.Method().Name)
}

// trial is the report of a dry run of steps.
func (x *run) trial(ctx context.Context, model, out string, steps []pass.Options) (*report.Report, error) {
	o, err := x.job(ctx, model, out, steps)
	if err != nil {
		return nil, err
	}
	// Sizes only. Gates would reject what is no result, and an unchanged model is an answer.
	o.DryRun, o.Digest, o.Gates, o.Errors, o.Reports, o.MustChange = true, false, nil, false, nil, false
	res, err := job.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return res.Report, nil
}

// checkDestination checks where results go before the work: invalid references, unknown hosts, wrong credentials.
func (x *run) checkDestination(ctx context.Context) error {
	if x.Push == "" {
		return nil
	}
	if remote.Is(x.Output) {
		return fieldErrorf("{Push} requires a result on disk, and {Output} is a URL")
	}
	ref, err := registry.Parse(x.Push)
	if err != nil {
		return err
	}
	x.Registry.warnInsecure(ref, x.Events)
	x.warnCard()
	return registry.Check(ctx, ref, x.Registry.options())
}

// warnCard warns of a model card that lacks what the registry shows.
func (x *run) warnCard() {
	if ref, err := registry.Parse(x.Push); err == nil {
		x.Events.warn(x.Reports.Lacking(ref))
	}
}

// Lacking is a *FieldError for what a reader of the registry may miss in the model card of a push, such as the base
// model on the Hugging Face Hub; nil for nothing.
func (r Reports) Lacking(ref registry.Reference) error {
	if ref.Scheme != "hf" || r.BaseModel != "" {
		return nil
	}
	return fieldErrorf("the model card names no base model; give {Reports.BaseModel} OWNER/NAME, or none")
}

// options are those of requests without progress.
func (r Registry) options() registry.Options {
	return registry.Options{PlainHTTP: r.PlainHTTP, Insecure: r.Insecure, Overwrite: r.Overwrite}
}

// warnInsecure warns of a connection whose certificate is not verified.
func (r Registry) warnInsecure(ref registry.Reference, e Events) {
	e.warnText(r.options().Warning(ref))
}

// push pushes a result that is complete, with its reports.
func (x *run) push(ctx context.Context, model string) (*registry.Pushed, error) {
	ref, err := registry.Parse(x.Push)
	if err != nil {
		return nil, err
	}
	o := x.Registry.options()
	o.Card = x.card
	pushed, err := PushModel(ctx, ref, model, x.Reports.Dir, o, x.Events)
	if err != nil {
		return nil, &ConclusionError{fmt.Errorf("the result %s is complete, but not pushed: %w", model, err)}
	}
	return pushed, nil
}

// PushModel collects the files of a model and its reports, which are next to it if reportDir is empty, and pushes them,
// unless a gate of its report did not hold: then the error is a *PushError. Of the events it uses Progress.
func PushModel(ctx context.Context, ref registry.Reference, model, reportDir string, o registry.Options,
	e Events) (*registry.Pushed, error) {
	show, end := e.stage(model, StageTransfer)
	a, err := registry.Collect(ctx, model, registry.CollectOptions{ReportDir: reportDir, Progress: show})
	end()
	if err != nil {
		return nil, err
	}
	if f, ok := a.Find(registry.ReportJSON); ok {
		r, err := readReport(f.Path, bounded.ReadRegular)
		if err != nil {
			return nil, err
		}
		// Of the stored report and not of a run: the files may be those of any earlier run, or edited.
		if !r.Passed() {
			return nil, &PushError{fmt.Errorf("%s: the verdict is %s: it is not pushed", f.Path, r.Verdict.Text())}
		}
	}
	o.Progress, end = e.stage(ref.Name, StageTransfer)
	defer end()
	return registry.Push(ctx, ref, a, o)
}
