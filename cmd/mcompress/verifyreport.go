package main

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
)

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
			fs.StringVar(&f.ReportDir, "report-dir", "", "`folder` of the reports (default: that of the model)")
			f.declareSignature(fs)
			declareConnection(fs, &f.Registry)
		}), group("gates on the figures of the report (if one does not hold: exit code 3)", f.declareGates)),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, math.MaxInt)
			if err != nil {
				return err
			}
			verifier, err := f.evidence(t, c.Command.Name).Open(c.Context)
			if err != nil {
				return err
			}
			if f.Signature != "" && len(args) > 1 {
				return usagef("--signature is that of one model or folder, not of %d", len(args))
			}
			var results []mcompress.Verdict
			var codes []int
			for _, arg := range args {
				found, err := verifier.Verify(c.Context, arg)
				// The others are still verified: this one is in the exit code.
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

// printEvidence prints a line for each mismatch, and the list of comparisons.
func (t *tool) printEvidence(results []mcompress.Verdict) error {
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
