package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/registry"
)

// evidenceFlags are the flags of verify-report.
type evidenceFlags struct {
	reportDir string
	plainHTTP bool
}

func verifyReportCommand(t *tool) *cli.Command {
	var f evidenceFlags
	return &cli.Command{
		Name:      "verify-report",
		Usage:     "compare reports with the models that they are about",
		ArgsUsage: "MODEL|REPORT|DIR|REFERENCE...",
		Description: `Recomputes the digest of each file that a report names, of the report and of its recipe, and compares
the metadata of the model and the figures of the report. Exit code 3, with one line for each mismatch, also if a gate of the report
did not hold or a model has no report. A folder is searched for reports. A pointer of Git LFS has the digest of its file. A reference,
such as oci://HOST/REPOSITORY:TAG, is verified by the digests of the registry, without downloading the model.`,
		Flags: group("evidence", func(fs *flag.FlagSet) {
			fs.StringVar(&f.reportDir, "report-dir", "", "`folder` of the reports (default: that of the model)")
			fs.BoolVar(&f.plainHTTP, "plain-http", false, "HTTP without TLS, for registries on loopback addresses")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			var results []*evidence.Result
			var codes []int
			for _, arg := range args {
				found, err := f.verify(c.Context, arg)
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
func (f *evidenceFlags) verify(ctx context.Context, arg string) ([]*evidence.Result, error) {
	if registry.IsReference(arg) {
		return f.stored(ctx, arg)
	}
	st, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return all(ctx, evidence.Folder(arg), arg)
	case strings.HasSuffix(arg, evidence.Suffix):
		return one(ctx, evidence.Folder(filepath.Dir(arg)), evidence.Folder(filepath.Dir(arg)), filepath.Base(arg))
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
		return []*evidence.Result{{Model: model, Mismatches: []string{arg + ": no report names it"}}}, nil
	}
	return one(ctx, files, documents, name)
}

// stored verifies the reports of an artifact in a registry.
func (f *evidenceFlags) stored(ctx context.Context, arg string) ([]*evidence.Result, error) {
	ref, err := registry.Parse(arg)
	if err != nil {
		return nil, &usageError{err}
	}
	s, err := registry.List(ctx, ref, registry.Options{PlainHTTP: f.plainHTTP})
	if err != nil {
		return nil, err
	}
	return all(ctx, evidence.Stored{Stored: s}, arg)
}

// all verifies every report.
func all(ctx context.Context, files evidence.Files, name string) ([]*evidence.Result, error) {
	names, err := files.Names(ctx)
	if err != nil {
		return nil, err
	}
	var results []*evidence.Result
	for _, report := range evidence.Reports(names) {
		found, err := one(ctx, files, files, report)
		if err != nil {
			return nil, err
		}
		results = append(results, found...)
	}
	if results == nil {
		return []*evidence.Result{{Mismatches: []string{name + ": no report"}}}, nil
	}
	return results, nil
}

// one verifies a report of documents.
func one(ctx context.Context, files, documents evidence.Files, report string) ([]*evidence.Result, error) {
	text, err := documents.Read(ctx, report)
	if errors.Is(err, evidence.ErrAbsent) {
		return []*evidence.Result{{Report: report, Mismatches: []string{err.Error()}}}, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := evidence.Verify(ctx, files, report, text)
	if err != nil {
		return nil, err
	}
	return []*evidence.Result{r}, nil
}

// printEvidence prints a line for each mismatch, and what was compared.
func (t *tool) printEvidence(results []*evidence.Result) error {
	if t.json {
		return t.encode(results)
	}
	for _, r := range results {
		for _, line := range r.Mismatches {
			fmt.Fprintln(t.stdout, "mismatch: "+line)
		}
		if r.Report == "" || r.Checked == nil {
			continue
		}
		verdict := "matches"
		if !r.Matches() {
			verdict = fmt.Sprintf("%d mismatches", len(r.Mismatches))
		}
		fmt.Fprintf(t.stdout, "%s: %s (%s)\n", r.Report, verdict, strings.Join(r.Checked, ", "))
		for _, line := range r.Unchecked {
			fmt.Fprintln(t.stdout, "  not compared: "+line)
		}
	}
	return nil
}
