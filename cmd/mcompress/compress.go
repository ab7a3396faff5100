package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// writing are the flags that all commands which write models have.
type writing struct {
	output    string
	exportDir string
	reportDir string
	formats   mcli.Formats
	digest    mcli.Enum
	dryRun    bool
	noSync    bool
	keepIR    bool
	gates     []report.Limit
}

func newWriting() *writing {
	known := slices.Sorted(maps.Keys(job.Formats()))
	return &writing{
		formats: mcli.Formats{Chosen: known, Known: known},
		digest:  mcli.Enum{Value: "sha256", Words: []string{"sha256", "none"}},
	}
}

func (w *writing) flags() []cli.Flag {
	return slices.Concat(group("output", func(fs *flag.FlagSet) {
		fs.StringVar(&w.output, "output", "", "`path` of the result, or of a folder for it, which several models need (default: NAME.METHOD.onnx beside the model)")
		fs.BoolVar(&w.dryRun, "dry-run", false, "show sizes and what would become of every tensor, write nothing")
		fs.BoolVar(&w.noSync, "no-sync", false, "do not wait until the disk has the result")
		fs.BoolVar(&w.keepIR, "keep-ir", false, "keep the model's IR version, if need be with weights among the graph inputs")
	}), w.reportFlags(), w.gateFlags())
}

func (w *writing) reportFlags() []cli.Flag {
	return group("report", func(fs *flag.FlagSet) {
		fs.Var(&w.formats, "report", "`formats` to write, with commas, or none")
		fs.StringVar(&w.reportDir, "report-dir", "", "`folder` for reports (default: that of the result)")
		fs.Var(&w.digest, "digest", "`digest` of files: sha256, none")
	})
}

func (w *writing) gateFlags() []cli.Flag {
	return group("gates (exit code 3 and NAME.rejected.onnx where one does not hold)", func(fs *flag.FlagSet) {
		w.gate(fs, "require-coverage", mcli.Share, "least `share` of float weights' bytes that is changed, from 0 to 1")
		w.gate(fs, "min-ratio", mcli.Factor, "least `factor` by which files become smaller")
		w.gate(fs, "max-size", mcli.Bytes, "largest `size` of the result's files")
	})
}

func (w *writing) gate(fs *flag.FlagSet, name string, parse func(string) (float64, error), usage string) {
	fs.Var(&mcli.Gate{Name: name, Parse: parse, To: &w.gates}, name, usage)
}

// compress does the same to each model and prints what came of it.
func (t *tool) compress(c *cli.Context, models []string, label string, steps []pass.Step, w *writing) error {
	outs, err := mcli.Outputs(models, label, w.output)
	if err != nil {
		return &usageError{err}
	}
	if w.output != "" && outs[0] != w.output && !w.dryRun {
		if err := os.MkdirAll(w.output, 0o755); err != nil {
			return err
		}
	}
	batch := make(mcli.Batch, len(models))
	for i, m := range models {
		res, err := t.one(c.Context, m, outs[i], label, steps, w)
		if err != nil && (len(models) == 1 || c.Context.Err() != nil) {
			return err
		}
		if err != nil {
			say(t.stderr, fmt.Errorf("%s: %w", c.Command.Name, err))
		}
		batch[i] = mcli.Outcome{Model: m, Result: res, Err: err}
	}
	if h := mcli.Hint(steps); h != "" && batch.Changed() && !t.quiet {
		fmt.Fprintln(t.stderr, "mcompress: "+h)
	}
	return t.conclude(batch, w)
}

// conclude prints the facts and turns them into an exit code.
func (t *tool) conclude(batch mcli.Batch, w *writing) error {
	print := batch.Text
	if t.json {
		print = batch.JSON
	}
	if err := print(t.stdout, t.style(), w.dryRun); err != nil {
		return err
	}
	switch {
	case batch.Failed():
		return exit{exitFailed}
	case batch.Rejected():
		return exit{exitGate}
	}
	return nil
}

func (t *tool) one(ctx context.Context, model, out, label string, steps []pass.Step, w *writing) (*job.Result, error) {
	o := job.Options{
		Input: model, Output: out, Label: label, Steps: steps,
		Version: version(), Workers: t.workers, Memory: recipeBudget(int64(t.memory)),
		Digest: w.digest.Value != "none", Sync: !w.noSync, DryRun: w.dryRun, KeepIR: w.keepIR,
		Gates: w.gates, Reports: w.formats.Chosen, ReportDir: w.reportDir, ExportDir: w.exportDir,
	}
	if p := t.newProgress(model); p != nil {
		o.Progress = p.show
		defer p.stop()
	}
	return job.Run(ctx, o)
}
