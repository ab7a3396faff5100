package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/distill"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// requestFlags are the flags of all commands that write models. Most set a field of the request.
type requestFlags struct {
	mcompress.Request

	formats  mcli.Formats
	card     cardFlags
	digest   mcli.Enum
	target   targetFlag
	list     listFlags
	samples  *verificationFlags
	baseline baselineFlag
	profile  profileFlags
	options  *mcli.MethodOptions // those given of methods; nil for none
}

func newRequestFlags() *requestFlags {
	w := &requestFlags{
		formats: mcli.Formats{Chosen: []string{"html", "json", "md"}, Known: formatNames()},
		digest:  mcli.Enum{Value: "sha256", Words: []string{"sha256", "none"}},
	}
	w.samples = newVerificationFlags()
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

func (w *requestFlags) flags() []cli.Flag {
	return slices.Concat(group("output", func(fs *flag.FlagSet) {
		fs.Var(resultPath{outPath{&w.Output}}, "output", "`path` of the result, packed if its name ends in .mcz, or of a folder, which several models require: an existing one, or a path with a slash at the end; files next to the model, such as configuration and tokenizer, are copied to it if one is config.json or genai_config.json; s3://BUCKET/KEY is uploaded when it is complete (default: NAME.METHOD.onnx next to the model)")
		fs.BoolVar(&w.DryRun, "dry-run", false, "print sizes and the ledger of all tensors, write nothing")
		fs.BoolVar(&w.NoSync, "no-sync", false, "skip fsync")
		fs.BoolVar(&w.Restart, "restart", false, "remove the results of an interrupted run, in the folder OUTPUT.partial, instead of continuing it")
		fs.BoolVar(&w.KeepIR, "keep-ir", false, "keep the IR version of the model; below 4, new initializers are also graph inputs")
		fs.BoolVar(&w.StripMetadata, "strip-metadata", false, "leave out the doc strings and metadata of graphs, functions, nodes, attributes, values and tensors, such as stack traces of exporters; those of the model itself stay")
		fs.IntVar(&w.DataFiles, "data-files", 0, "`number` of external data files of the result, of about equal cost: NAME.onnx.data-00001-of-00016 (default: one where the model does not fit into its file, or the source has external data)")
	}), w.reportFlags(), w.samples.flags(func(fs *flag.FlagSet) {
		fs.BoolVar(&w.Verification.Force, "verify", false, "verify the result against the source before saving it, whatever its size (default: up to 512 MiB of weights)")
		fs.BoolVar(&w.Verification.Skip, "no-verify", false, "skip verification")
	}), w.gateFlags(func(fs *flag.FlagSet) {
		declareGates(fs, &w.Gates, everyGate)
		w.samples.declareRandom(fs)
		w.baseline.declare(fs)
	}), group("registry", func(fs *flag.FlagSet) {
		fs.StringVar(&w.Push, "push", "", "push the result and its reports to `dest`, such as oci://HOST/REPOSITORY:TAG, if all gates held; see mcompress push --help")
		declareRegistry(fs, &w.Registry, "with --push: "+overwritesTag)
	}))
}

func (w *requestFlags) reportFlags() []cli.Flag {
	return group("report", func(fs *flag.FlagSet) {
		fs.Var(&w.formats, "report", "comma-separated report `formats`: "+strings.Join(formatNames(), ", ")+"; or none")
		w.card.flags(fs)
		outPathVar(fs, &w.Reports.Dir, "report-dir", "`folder` for reports (default: that of the result)")
		fs.Var(&w.digest, "digest", "`digest` of files: sha256, none")
	})
}

func (w *requestFlags) gateFlags(more func(*flag.FlagSet)) []cli.Flag {
	return group("gates (if one does not hold: exit code 3 and NAME.rejected.onnx)", more)
}

// request is the request of the flags for the models.
func (w *requestFlags) request(t *tool, command string, models []string) (mcompress.Request, error) {
	r := w.Request
	r.Models, r.Limits, r.Events = models, t.requestLimits(), t.events(command)
	r.Target = w.target.String()
	r.Reports.Formats, r.Reports.NoDigests, r.Reports.NoErrors = w.formats.Chosen, w.digest.Value == "none", len(w.formats.Chosen) == 0
	w.card.fill(&r.Reports)
	// The first result of a repository has no baseline yet: that of a policy may not exist, one of the command line has
	// to.
	r.Baseline, r.BaselineOptional = w.baseline.source, w.baseline.policy
	w.list.fill(&r.List)
	return r, w.samples.fill(&r.Verification)
}

// run carries out the request of the flags for the models, and prints the results.
func (w *requestFlags) run(c *cli.Context, t *tool, models []string) error {
	r, err := w.request(t, c.Command.Name, models)
	if err != nil {
		return err
	}
	if t.planned != nil {
		t.planned.Request = r
		return nil
	}
	p := &outcomePrinter{tool: t, command: c.Command.Name, request: r, profile: &w.profile, recorders: map[string]*profile.Recorder{}}
	if w.list.from != "" {
		p.streams = true
	}
	p.attach(&r)
	outcomes, err := r.RunAll(c.Context)
	return p.end(outcomes, err)
}

// An outcomePrinter prints the outcomes of a request: those of a list while it runs, others in the end.
type outcomePrinter struct {
	*tool
	command   string
	request   mcompress.Request
	profile   *profileFlags // of training; may be nil
	streams   bool          // line by line
	stream    *mcli.Stream
	recorders map[string]*profile.Recorder // of models
}

// attach sets the events of the request.
func (p *outcomePrinter) attach(r *mcompress.Request) {
	if r.Alternative != nil && (p.json || p.streams) {
		r.Alternative = nil // nothing shows it
	}
	r.Events.Selected = p.selected
	r.Events.Outcome = p.outcome
	if p.profile != nil && p.profile.on {
		r.Events.Steps = func(model string, steps []mcompress.Step) []mcompress.Step {
			recorder := profile.New()
			p.recorders[mcli.Shown(model)] = recorder
			return distill.WithRecorder(steps, recorder)
		}
	}
}

// selected prints the part of the list that this run has.
func (p *outcomePrinter) selected(s mcompress.Selection) (err error) {
	if s.Count > 1 && !p.quiet && !p.json {
		fmt.Fprintf(p.stderr, "mcompress: %s: %s\n", p.command, s)
	}
	if p.streams {
		p.stream, err = mcli.NewStream(p.stdout, p.style(), p.json, s)
		if p.json {
			p.tool.progress.stream = p.stream
		}
	}
	return err
}

// outcome prints the outcome of a model of a list.
func (p *outcomePrinter) outcome(o mcompress.Outcome) error {
	if o.Err != nil && p.several() {
		name := p.command
		if o.Variant != "" {
			name += ": " + o.Variant
		}
		printError(p.stderr, withCommand(name, o.Err))
	}
	var err error
	if p.profile != nil && p.recorders[o.Model] != nil {
		err = p.profile.write(o.Model, p.recorders[o.Model])
	}
	if p.stream != nil {
		o.Err = inFlags(o.Err)
		err = errors.Join(err, p.stream.Model(p.observed(o), outcomeCode(o)))
	}
	return err
}

// several reports whether errors are printed one by one, as the program does not end with the error of its only model.
func (p *outcomePrinter) several() bool {
	return p.streams || len(p.request.Models) > 1 || p.request.Variants != nil
}

// observed is an outcome with what was measured of its training.
func (p *outcomePrinter) observed(o mcompress.Outcome) mcli.Outcome {
	return mcli.Outcome{Outcome: o, Profile: p.recorders[o.Model].Profile()}
}

// end prints what is left, and returns the error of the run: that of the request, or the exit code of the outcomes.
func (p *outcomePrinter) end(outcomes []mcompress.Outcome, err error) error {
	// Without an end there is no table: its last lines would be missing. What was done before an index or a push failed is printed.
	if err != nil && !isA[*mcompress.ConclusionError](err) {
		return err
	}
	if len(outcomes) == 1 && !p.several() && outcomes[0].Err != nil {
		return errors.Join(outcomes[0].Err, err)
	}
	var batch mcli.Batch
	var codes []int
	for _, o := range outcomes {
		batch = append(batch, p.observed(o))
		codes = append(codes, outcomeCode(o))
	}
	switch {
	case p.stream != nil:
		return errors.Join(err, p.stream.End(first(codes)), ended(codes))
	case p.request.Variants != nil:
		err = errors.Join(err, p.variants(batch, codes))
	default:
		for _, h := range batch.TerminalHints(p.request.Verification.Backend == "ort" && !p.request.Verification.Skip) {
			p.hint(h)
		}
		err = errors.Join(p.conclude(batch, p.request.DryRun), err)
	}
	if len(outcomes) > 0 && outcomes[0].Pushed != nil {
		model := outcomes[0].Result.Output
		if p.request.Variants != nil {
			model = mcli.BaseName(model)
		}
		err = errors.Join(err, p.pushed(model, outcomes[0].Pushed))
	}
	if err != nil {
		return err
	}
	return ended(codes)
}

// hint prints a hint.
func (t *tool) hint(text string) {
	if !t.quiet {
		fmt.Fprintln(t.stderr, "mcompress: hint: "+text)
	}
}

// pushed prints what was pushed; with --json to stderr, as stdout has the report.
func (t *tool) pushed(model string, p *registry.Pushed) error {
	if t.json {
		return mcli.Pushed(t.stderr, mcli.Style{}, model, p)
	}
	return mcli.Pushed(t.stdout, t.style(), model, p)
}

// conclude prints results.
func (t *tool) conclude(batch mcli.Batch, dry bool) error {
	print := batch.Text
	if t.json {
		print = batch.JSON
	}
	return print(t.stdout, t.style(), dry)
}

// outcomeCode is the exit code of the outcome of a model.
func outcomeCode(o mcompress.Outcome) int { return exitCode(o.Error()) }

// ended is the end of a program with the exit codes of several models.
func ended(codes []int) error {
	if code := first(codes); code != exitDone {
		return exit{code}
	}
	return nil
}

// events print what a run tells besides its results.
func (t *tool) events(command string) mcompress.Events {
	e := mcompress.Events{
		Warning: func(err error) { t.printWarning(command, err) },
		Note: func(text string) {
			if !t.quiet {
				fmt.Fprintln(t.stderr, "mcompress: "+text)
			}
		},
	}
	// Events of progress are frequent, and cost a lock: there are none where nothing shows them.
	if t.json || t.newProgress("") != nil {
		e.Progress = t.progress.show
	}
	return e
}

// printWarning prints a warning of a command, unless it is nil.
func (t *tool) printWarning(command string, err error) {
	if err != nil {
		printError(t.stderr, fmt.Errorf("%s: warning: %w", command, inFlags(err)))
	}
}
