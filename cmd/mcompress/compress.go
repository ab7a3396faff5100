package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// writing has the flags of all commands that write models.
type writing struct {
	output    string
	exportDir string
	reportDir string
	formats   mcli.Formats
	card      cardFlags
	digest    mcli.Enum
	dryRun    bool
	noSync    bool
	restart   bool
	keepIR    bool
	strip     bool
	dataFiles int
	gates     []report.Limit

	pushing  pushFlags
	against  baselineFlag
	baseline *report.Baseline // that of against

	measured profileFlags

	target targetFlag
	folder []string // the models, if the output is a folder

	fleet     fleetFlags
	options   *mcli.MethodOptions // those given of methods; nil for none
	requested string              // digest of the request; empty without --if-changed
	stream    *mcli.Stream        // of a list of models; nil for models of the command line

	mustChange bool   // see job.Options
	dataSuffix string // see job.Options

	// choose searches the steps for a model; nil if they are given.
	choose func(ctx context.Context, model, out string, j ir.Journal) ([]pass.Options, *pass.Search, error)

	// alternative is the step that the summary names where the result is hardly smaller than the source; nil for none.
	alternative pass.Options

	proving  *verificationFlags
	verify   bool
	noVerify bool
}

func newWriting() *writing {
	w := &writing{
		formats: mcli.Formats{Chosen: []string{"html", "json", "md"}, Known: formatNames()},
		digest:  mcli.Enum{Value: "sha256", Words: []string{"sha256", "none"}},
	}
	w.proving = newVerificationFlags(&w.gates)
	return w
}

// formatNames are the names of the report formats.
func formatNames() []string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func (w *writing) flags() []cli.Flag {
	return slices.Concat(group("output", func(fs *flag.FlagSet) {
		fs.Var(resultPath{outPath{&w.output}}, "output", "`path` of the result, packed if its name ends in .mcz, or of a folder, which several models require: an existing one, or a path with a slash at the end; files next to the model, such as configuration and tokenizer, are copied to it if one is config.json or genai_config.json; s3://BUCKET/KEY is uploaded when it is complete (default: NAME.METHOD.onnx next to the model)")
		fs.BoolVar(&w.dryRun, "dry-run", false, "print sizes and the ledger of all tensors, write nothing")
		fs.BoolVar(&w.noSync, "no-sync", false, "skip fsync")
		fs.BoolVar(&w.restart, "restart", false, "remove the results of an interrupted run, in the folder OUTPUT.partial, instead of continuing it")
		fs.BoolVar(&w.keepIR, "keep-ir", false, "keep the IR version of the model; below 4, new initializers are also graph inputs")
		fs.BoolVar(&w.strip, "strip-metadata", false, "leave out the doc strings and metadata of graphs, functions, nodes, attributes, values and tensors, such as stack traces of exporters; those of the model itself stay")
		fs.IntVar(&w.dataFiles, "data-files", 0, "`number` of external data files of the result, of about equal cost: NAME.onnx.data-00001-of-00016 (default: one where the model does not fit into its file, or the source has external data)")
	}), w.reportFlags(), w.proving.flags(func(fs *flag.FlagSet) {
		fs.BoolVar(&w.verify, "verify", false, "verify the result against the source before saving it, whatever its size (default: up to 512 MiB of weights)")
		fs.BoolVar(&w.noVerify, "no-verify", false, "skip verification")
	}), w.gateFlags(func(fs *flag.FlagSet) {
		declareGates(fs, &w.gates, everyGate)
		w.proving.declareRandom(fs)
		w.against.declare(fs)
	}), w.pushing.flags())
}

// documents checks what the formats of reports require, and returns the model card.
func (w *writing) documents() (report.Card, error) {
	if w.digest.Value == "none" && slices.Contains(w.formats.Chosen, "intoto") {
		return report.Card{}, usagef("the report intoto requires digests, which --digest none turns off")
	}
	return w.card.card(w.formats.Chosen...)
}

func (w *writing) reportFlags() []cli.Flag {
	return group("report", func(fs *flag.FlagSet) {
		fs.Var(&w.formats, "report", "comma-separated report `formats`: "+strings.Join(formatNames(), ", ")+"; or none")
		w.card.flags(fs)
		outPathVar(fs, &w.reportDir, "report-dir", "`folder` for reports (default: that of the result)")
		fs.Var(&w.digest, "digest", "`digest` of files: sha256, none")
	})
}

func (w *writing) gateFlags(more func(*flag.FlagSet)) []cli.Flag {
	return group("gates (if one does not hold: exit code 3 and NAME.rejected.onnx)", more)
}

// distinctReports is an error if the reports of two results would have the same name in --report-dir.
func (w *writing) distinctReports(models, outs []string) error {
	if w.reportDir == "" || len(w.formats.Chosen) == 0 {
		return nil
	}
	from := make(map[string]string, len(outs))
	for i, out := range outs {
		path := (&job.Options{ReportDir: w.reportDir}).ReportPath(out, report.JSONSuffix)
		if other, taken := from[path]; taken {
			return usagef("the reports of %s and %s would both become %s; without --report-dir they are in the folders of the results", remote.Shown(other), remote.Shown(models[i]), path)
		}
		from[path] = models[i]
	}
	return nil
}

// compress runs the steps on each model and prints the results.
func (w *writing) compress(c *cli.Context, t *tool, models []string, label string, steps []pass.Options) error {
	outs, err := w.fleet.outputs(models, label, w.output)
	if err != nil {
		return &usageError{err}
	}
	if err := w.distinctReports(models, outs); err != nil {
		return err
	}
	if path := distill.Checkpoint(steps); path != "" && len(models) > 1 {
		return usagef("--save %s is the checkpoint of one training, and there are %d models; train each with a checkpoint of its own", path, len(models))
	}
	settings, err := w.verification(t)
	if err != nil {
		return err
	}
	program, err := w.proving.command()
	if err != nil {
		return err
	}
	steps = distill.WithMetric(steps, w.proving.metric, w.proving.scores, program, w.proving.identity(c.Context))
	if _, err := w.target.apply(steps); err != nil {
		return err
	}
	if w.baseline, err = w.against.load(c.Context, t, c.Command.Name, &w.pushing.registryFlags, w.gates); err != nil {
		return err
	}
	if t.division != nil {
		if err := t.division.check(w, models, steps); err != nil {
			return err
		}
	}
	if remote.Is(w.output) && w.pushing.dest != "" {
		return usagef("--push requires a result on disk, and --output is a URL")
	}
	if err := w.pushing.check(c.Context, t, c.Command.Name, models, w.dryRun); err != nil {
		return err
	}
	w.card.warn(t, c.Command.Name, w.pushing.dest)
	t.warnOrder(c.Command.Name, steps)
	mine, selected, err := w.fleet.pick(c.Context, t, c.Command.Name, models, outs, w.pushing.connection())
	if err != nil {
		return err
	}
	if w.output != "" && len(outs) > 0 && outs[0] != w.output {
		w.folder = models
		if !w.dryRun && !remote.Is(w.output) {
			undo, err := atomicfile.MakeDir(w.output)
			if err != nil {
				return err
			}
			defer undo()
		}
	}
	if w.requested, err = w.recognized(c, t, steps); err != nil {
		return err
	}
	if w.fleet.from != "" {
		if w.stream, err = mcli.NewStream(t.stdout, t.style(), t.json, selected); err != nil {
			return err
		}
	}
	index, err := w.newIndexed(selected)
	if err != nil {
		return err
	}
	if t.division.isWorker() || t.division.isPlanning() {
		mine[0].output = t.division.local(mine[0].output)
		_, err := w.compressed(c, t, mine[0], label, steps, settings)
		return err
	}
	var batch mcli.Batch
	var codes []int
	for _, m := range mine {
		outcome, err := w.outcome(c, t, m, label, steps, settings)
		if outcome.Err != nil && (len(models) == 1 && w.stream == nil || c.Context.Err() != nil) {
			return outcome.Err
		}
		if outcome.Err != nil {
			printError(t.stderr, fmt.Errorf("%s: %w", c.Command.Name, outcome.Err))
		}
		codes = append(codes, outcomeCode(outcome))
		if w.stream != nil {
			err = errors.Join(err, w.stream.Model(outcome, outcomeCode(outcome)))
			index.add(outcome)
		} else {
			batch = append(batch, outcome)
		}
		if err != nil {
			return err
		}
		if w.fleet.failFast && codes[len(codes)-1] != exitDone {
			break
		}
	}
	if w.stream != nil {
		if err := errors.Join(w.stream.End(first(codes)), index.write(c.Context, mine[len(codes):])); err != nil {
			return err
		}
		return ended(codes)
	}
	for _, h := range batch.TerminalHints(settings != nil && !settings.Backend.Embedded()) {
		if !t.quiet {
			fmt.Fprintln(t.stderr, "mcompress: hint: "+h)
		}
	}
	if err := w.conclude(t, batch); err != nil || w.pushing.dest == "" {
		return err
	}
	card, err := w.documents()
	if err != nil {
		return err
	}
	return w.pushing.push(c.Context, t, batch[0].Result.Output, w.reportDir, card)
}

// outcome compresses a model, unless its result is there.
func (w *writing) outcome(c *cli.Context, t *tool, m listed, label string, steps []pass.Options, settings *job.Verification) (mcli.Outcome, error) {
	if remote.Is(m.output) {
		if job.SameFile(m.model, m.output) {
			return mcli.Outcome{Model: m.model, Err: usagef("%s: the output is the input; name another file with --output", m.output)}, nil
		}
		s, err := w.stage(c.Context, m.model, m.output)
		if err != nil {
			return mcli.Outcome{Model: remote.Shown(m.model), Err: err}, nil
		}
		defer s.leave()
		m.output, m.staged = s.path, s
	}
	if w.folder != nil && w.stream != nil && !w.dryRun { // a folder of the list
		undo, err := atomicfile.MakeDir(filepath.Dir(m.output))
		if err != nil {
			return mcli.Outcome{Model: remote.Shown(m.model), Err: err}, nil
		}
		defer undo()
	}
	recorder := w.measured.recorder()
	res, err := w.one(c, t, m, label, distill.WithRecorder(steps, recorder), settings)
	if err == nil && m.staged != nil && !w.dryRun {
		err = m.staged.publish(c.Context, t.division, m.model, res)
	}
	if res != nil && res.NotRun != "" {
		t.warnNotRun(c.Command.Name, res.Output, res.NotRun)
	}
	o := mcli.Outcome{Model: remote.Shown(m.model), Result: res, Err: err, Alternative: w.better(c.Context, t, m.model, m.output, res), Profile: recorder.Profile()}
	return o, w.measured.write(m.model, recorder)
}

// better compares the result with that of the alternative step, by a dry run. An error of the latter is not one of the result.
func (w *writing) better(ctx context.Context, t *tool, model, out string, res *job.Result) string {
	if w.alternative == nil || res == nil || t.json || w.stream != nil || registry.IsReference(model) || !mcli.NeedsAlternative(res.Report) {
		return ""
	}
	o, err := w.job(ctx, t, model, out, []pass.Options{w.alternative})
	if err != nil {
		return ""
	}
	o.DryRun, o.Digest, o.Gates, o.Errors, o.Reports = true, false, nil, false, nil
	other, err := job.Run(ctx, o)
	if err != nil {
		return ""
	}
	return mcli.Alternative(res.Report, other.Report, w.alternative.Method().Name)
}

// verification returns the settings for verifying results before they are saved, nil for none.
func (w *writing) verification(t *tool) (*job.Verification, error) {
	gate := w.proving.outputGate()
	switch {
	case w.noVerify && w.verify:
		return nil, usagef("--verify and --no-verify exclude each other")
	case w.noVerify && gate != "":
		return nil, usagef("--%s requires verification, which --no-verify turns off", gate)
	case w.noVerify:
		return nil, nil
	}
	v, err := w.proving.verification(t)
	v.Demand(w.verify, w.gates)
	v.Digest = w.digest.Value != "none"
	return &v, err
}

// conclude prints the results and returns their exit code.
func (w *writing) conclude(t *tool, batch mcli.Batch) error {
	print := batch.Text
	if t.json {
		print = batch.JSON
	}
	if err := print(t.stdout, t.style(), w.dryRun); err != nil {
		return err
	}
	var codes []int
	for _, o := range batch {
		codes = append(codes, outcomeCode(o))
	}
	return ended(codes)
}

// outcomeCode is the exit code of the outcome of a model.
func outcomeCode(o mcli.Outcome) int {
	if o.Err == nil && o.Result.Rejected {
		return exitGate
	}
	return exitCode(o.Err)
}

// ended is the end of a program with the exit codes of several models.
func ended(codes []int) error {
	if code := first(codes); code != exitDone {
		return exit{code}
	}
	return nil
}

// warnOrder warns of steps that should run in another order.
func (t *tool) warnOrder(command string, steps []pass.Options) {
	for _, text := range pass.Warnings(steps) {
		printError(t.stderr, fmt.Errorf("%s: warning: %s", command, text))
	}
}

// warnNotRun warns that a model was not verified.
func (t *tool) warnNotRun(command, model, why string) {
	printError(t.stderr, fmt.Errorf("%s: warning: %s was not run: %s", command, model, why))
}

// one compresses a model by the steps, or by those that a search chooses, unless its result is there.
func (w *writing) one(c *cli.Context, t *tool, m listed, label string, steps []pass.Options, settings *job.Verification) (_ *job.Result, err error) {
	stored, err := w.stored(c, t, m.model)
	if err != nil {
		return nil, err
	}
	if w.fleet.ifChanged {
		if res, err := w.done(c, t, m, stored, steps); res != nil || err != nil {
			return res, err
		}
		if m.staged != nil {
			if res, err := w.uploadable(c.Context, m); res != nil || err != nil {
				return res, err
			}
		}
	}
	if stored == nil {
		return w.compressed(c, t, m, label, steps, settings)
	}
	p, err := w.pull(c.Context, t, m, stored)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.leave(c.Context, err)) }()
	res, err := w.compressed(c, t, listed{model: p.model, output: m.output}, label, steps, settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.model, err)
	}
	res.Input = m.model
	return res, nil
}

// done returns the result of an earlier run, nil if there is none of the same source and options. stored is the source in a registry, nil if it is a file.
func (w *writing) done(c *cli.Context, t *tool, m listed, stored *registry.Stored, steps []pass.Options) (*job.Result, error) {
	o := job.Options{Input: m.model, Output: m.published(), Request: w.requested, ReportDir: w.reportDir}
	if m.staged != nil && m.staged.source != "" {
		o.Same = func(ctx context.Context, report string) (bool, error) {
			tag, err := remote.Source(ctx, report)
			return tag == m.staged.source, err
		}
	}
	if stored != nil {
		o.Known = []report.File{}
		for _, f := range stored.Files {
			o.Known = append(o.Known, report.File{Name: f.Name, Bytes: f.Size, SHA256: f.SHA256})
		}
	}
	res, different, err := job.Done(c.Context, o)
	switch { // A run that was killed after it had published the result left its journal.
	case res != nil && stored != nil:
		p := pulledModel{folder: pulledTo(m.output)}
		_ = errors.Join(journal.Discard(m.output), p.leave(c.Context, nil))
	case res != nil:
		if r, err := w.resume(c, t, m.model, m.output, steps); err == nil {
			_ = r.leave(c.Context, nil)
		}
	}
	if different != "" && !t.quiet {
		fmt.Fprintf(t.stderr, "mcompress: %s: not up to date: %s\n", m.model, different)
	}
	return res, err
}

// compressed compresses a file.
func (w *writing) compressed(c *cli.Context, t *tool, m listed, label string, steps []pass.Options, settings *job.Verification) (_ *job.Result, err error) {
	ctx, model, out := c.Context, m.model, m.output
	var kept ir.Journal
	var source *job.Digest
	if !w.dryRun {
		r, failed := w.resume(c, t, model, out, steps)
		if failed != nil {
			return nil, failed
		}
		kept, source = r, r.source
		defer func() { err = errors.Join(err, r.leave(ctx, err)) }()
	}
	if t.division.isPlanning() {
		return nil, t.division.measure(ctx, t, w, m, label, steps, settings)
	}
	var search *pass.Search
	if w.choose != nil {
		if steps, search, err = w.choose(ctx, model, out, kept); err != nil {
			return nil, fmt.Errorf("%s: %w", model, err)
		}
	}
	o, err := w.job(ctx, t, model, out, steps)
	if err != nil {
		return nil, err
	}
	o.Journal, o.Shared = kept, source
	o.Divided, o.Worker = t.division != nil, t.division.isWorker()
	o.Label, o.Search, o.Verify, o.ExportDir, o.Folder, o.Request = label, search, settings, w.exportDir, w.folder, w.requested
	if w.stream != nil && t.json {
		o.Progress, o.Trained = w.stream.Written(remote.Shown(model)), w.stream.Trained(remote.Shown(model))
	} else if p := t.newProgress(model); p != nil {
		o.Progress, o.Trained = p.show, p.trained
		defer p.stop()
	}
	res, err := job.Run(ctx, o)
	if o.Worker && err == nil {
		t.division.parts = res.Parts
	}
	return res, err
}

// layout is that of the results.
func (w *writing) layout() onnx.LayoutOptions {
	return onnx.LayoutOptions{Strip: w.strip, DataSuffix: w.dataSuffix, DataFiles: w.dataFiles}
}

// job returns the options of the flags for running the steps on a model, with the options of the target set in them.
func (w *writing) job(ctx context.Context, t *tool, model, out string, steps []pass.Options) (o job.Options, err error) {
	o = job.Options{
		Input: model, Output: out, Steps: steps, Workers: t.workers, Memory: recipeBudget(int64(t.memory)), Limits: t.limits(),
		Digest: w.digest.Value != "none", Sync: !w.noSync, DryRun: w.dryRun, KeepIR: w.keepIR, Strip: w.strip, Alone: true,
		Gates: w.gates, Baseline: w.baseline, Errors: len(w.formats.Chosen) > 0, Reports: w.formats.Chosen, ReportDir: w.reportDir,
		MustChange: w.mustChange, DataSuffix: w.dataSuffix, DataFiles: w.dataFiles, Dims: w.proving.dims,
	}
	if err := pass.CheckDataFiles(w.dataFiles); err != nil {
		return o, usagef("--data-files: %w", err)
	}
	if remote.Is(model) {
		o.Input = remote.Shown(model)
		o.Source = func() (*onnx.File, error) { return remote.OpenModel(ctx, model) }
	}
	if o.Target, err = w.target.apply(steps); err != nil {
		return o, err
	}
	o.Hints = mcli.Hints(steps, o.Target)
	o.Card, err = w.documents()
	return o, err
}
