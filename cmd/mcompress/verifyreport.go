package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/internal/sign"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// evidenceFlags are the flags of verify-report.
type evidenceFlags struct {
	registryFlags
	signatureFlags
	baselineFlag
	limits    evidence.Limits
	reportDir string
}

func verifyReportCommand(t *tool) *cli.Command {
	f := evidenceFlags{baselineFlag: baselineFlag{recorded: true}}
	return &cli.Command{
		Name:      "verify-report",
		Usage:     "compare reports with the models that they are about",
		ArgsUsage: "MODEL|REPORT|DIR|REFERENCE...",
		Description: `Recomputes the digest of each file that a report names, of the report and of its recipe, and compares
the metadata of the model, the figures of the report, and its Markdown and HTML. Exit code 3, with one line for each mismatch, also if a gate of the report
did not hold or a model has no report. A folder is searched for reports. A pointer of Git LFS has the digest of its file. A reference,
such as oci://HOST/REPOSITORY:TAG, is verified by the digests of the registry, without downloading the model.`,
		Flags: slices.Concat(group("evidence", func(fs *flag.FlagSet) {
			fs.StringVar(&f.reportDir, "report-dir", "", "`folder` of the reports (default: that of the model)")
			f.signatureFlags.declare(fs)
			f.connect(fs)
		}), group("gates on the figures of the report (if one does not hold: exit code 3)", func(fs *flag.FlagSet) {
			declareGates(fs, &f.limits.Gates, everyGate)
			allowRandomFlag(fs, &f.limits.AllowRandomInputs)
			f.baselineFlag.declare(fs)
		})),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			if err := f.open(); err != nil {
				return err
			}
			if f.limits.Baseline, err = f.load(c.Context, t, c.Command.Name, f.Registry, f.limits.Gates); err != nil {
				return err
			}
			if f.signature != "" && len(args) > 1 {
				return usagef("--signature is that of one model or folder, not of %d", len(args))
			}
			var results []*evidence.Result
			var codes []int
			for _, arg := range args {
				found, err := f.verify(c.Context, t, arg)
				if err != nil && (len(args) == 1 || c.Context.Err() != nil) {
					return err
				}
				if err != nil {
					printError(t.stderr, fmt.Errorf("%s: %w", c.Command.Name, err))
					codes = append(codes, exitCode(err))
				}
				for _, r := range found {
					if !r.Matches() {
						codes = append(codes, exitGate)
					}
				}
				results = append(results, found...)
			}
			if err := t.printEvidence(results); err != nil {
				return err
			}
			if code := first(codes); code != exitDone {
				return exit{code}
			}
			return nil
		},
	}
}

// verify verifies the reports of an argument.
func (f *evidenceFlags) verify(ctx context.Context, t *tool, arg string) ([]*evidence.Result, error) {
	if registry.IsReference(arg) {
		return f.stored(ctx, t, arg)
	}
	st, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return f.folder(ctx, arg)
	case reportNamed(arg) != "":
		return f.report(ctx, evidence.Folder(filepath.Dir(arg)), evidence.Folder(filepath.Dir(arg)), filepath.Base(reportNamed(arg)))
	}
	files := evidence.Folder(filepath.Dir(arg))
	documents := files
	if f.reportDir != "" {
		documents = evidence.Folder(f.reportDir)
	}
	model := filepath.Base(arg)
	name, err := evidence.ReportOf(ctx, documents, model)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		r := &evidence.Result{Model: model}
		return []*evidence.Result{r}, f.unreported(ctx, arg, arg+": no report names it", r)
	}
	return f.report(ctx, files, documents, name)
}

// reportNamed is the JSON form of the report that path is a form of; "" if it is none.
func reportNamed(path string) string {
	for _, format := range report.Formats() {
		if stem, ok := strings.CutSuffix(path, format.Suffix); ok {
			return stem + report.JSONSuffix
		}
	}
	return ""
}

// folder verifies the reports of a folder, and the signature of the folder or those of its models.
func (f *evidenceFlags) folder(ctx context.Context, dir string) ([]*evidence.Result, error) {
	results, err := all(ctx, evidence.Folder(dir), f.limits)
	if err != nil {
		return nil, err
	}
	whole := &evidence.Result{Model: dir}
	if results == nil {
		return []*evidence.Result{whole}, f.unreported(ctx, dir, dir+": no report", whole)
	}
	_, err = os.Stat(sign.DefaultPath(dir))
	if f.signature != "" || err == nil {
		return append(results, whole), f.ofPath(ctx, dir, whole)
	}
	for _, r := range results {
		if err := f.ofModel(ctx, evidence.Folder(dir), r); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// unreported is the result of a model or folder without a report, of which a signature may be verified nevertheless.
func (f *evidenceFlags) unreported(ctx context.Context, path, problem string, r *evidence.Result) error {
	if f.public == nil {
		r.Mismatches = append(r.Mismatches, problem)
		return nil
	}
	r.Unchecked = append(r.Unchecked, problem)
	return f.ofPath(ctx, path, r)
}

// report verifies a report of documents, and the signature of its model.
func (f *evidenceFlags) report(ctx context.Context, files, documents evidence.Folder, name string) ([]*evidence.Result, error) {
	r, err := one(ctx, files, documents, name, f.limits)
	if err != nil {
		return nil, err
	}
	return []*evidence.Result{r}, f.ofModel(ctx, files, r)
}

// ofModel verifies the signature of the model of a report, unless it is not there.
func (f *evidenceFlags) ofModel(ctx context.Context, files evidence.Folder, r *evidence.Result) error {
	if r.Model == "" {
		return nil
	}
	path := filepath.Join(string(files), filepath.FromSlash(r.Model))
	if _, err := os.Stat(path); err != nil {
		return nil // a mismatch of the report already
	}
	return f.ofPath(ctx, path, r)
}

// stored verifies the reports of an artifact in a registry, or of a folder.
func (f *evidenceFlags) stored(ctx context.Context, t *tool, arg string) ([]*evidence.Result, error) {
	ref, err := parseReference(arg)
	if err != nil {
		return nil, err
	}
	if ref.Host == "" {
		return f.folder(ctx, ref.Name)
	}
	f.warn(t, "verify-report", ref)
	s, err := registry.List(ctx, ref, f.connection())
	if err != nil {
		return nil, err
	}
	files := evidence.Stored{Stored: s}
	results, err := all(ctx, files, f.limits)
	if err != nil {
		return nil, err
	}
	if results == nil {
		results = []*evidence.Result{{Mismatches: []string{arg + ": no report"}}}
	}
	return results, f.ofStored(ctx, files, results[0])
}

// all verifies every report; nil if there is none.
func all(ctx context.Context, files evidence.Files, limits evidence.Limits) ([]*evidence.Result, error) {
	names, err := files.Names(ctx)
	if err != nil {
		return nil, err
	}
	var results []*evidence.Result
	for _, name := range evidence.Reports(names) {
		r, err := one(ctx, files, files, name, limits)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// one verifies a report of documents.
func one(ctx context.Context, files, documents evidence.Files, name string, limits evidence.Limits) (*evidence.Result, error) {
	text, err := documents.Read(ctx, name)
	if errors.Is(err, evidence.ErrAbsent) {
		return &evidence.Result{Report: name, Mismatches: []string{err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := evidence.Verify(ctx, files, name, text, limits)
	if err == nil {
		err = r.Rendered(ctx, documents, text)
	}
	return r, err
}

// printEvidence prints a line for each mismatch, and the list of comparisons.
func (t *tool) printEvidence(results []*evidence.Result) error {
	if t.json {
		return t.encode(results)
	}
	for _, r := range results {
		for _, line := range r.Mismatches {
			fmt.Fprintln(t.stdout, "mismatch: "+line)
		}
		if r.Checked == nil && r.Unchecked == nil {
			continue
		}
		verdict := "matches"
		if !r.Matches() {
			verdict = english.Plural(len(r.Mismatches), "mismatch", "mismatches")
		}
		fmt.Fprintf(t.stdout, "%s: %s (%s)\n", cmp.Or(r.Report, r.Model), verdict, strings.Join(r.Checked, ", "))
		for _, line := range r.Unchecked {
			fmt.Fprintln(t.stdout, "  not compared: "+line)
		}
	}
	return nil
}
