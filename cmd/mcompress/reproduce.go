package main

import (
	"flag"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/report"
)

func reproduceCommand(t *tool) *cli.Command {
	var inputs string
	return &cli.Command{
		Name:      "reproduce",
		Usage:     "run the recipe of a report on its source, and compare the result with the report",
		ArgsUsage: "REPORT SOURCE",
		Description: `Exit code 0 if all files of the result are bit-identical to those of the report, 3 if not, or if SOURCE or
the files that the recipe reads are not those of the report. Nothing is kept; the result needs space in TMPDIR.`,
		Flags: group("inputs", func(fs *flag.FlagSet) {
			fs.StringVar(&inputs, "inputs", "", "`folder` of the files that the recipe reads (default: the working folder, those of REPORT and SOURCE)")
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			r, err := openReport(args[0])
			if err != nil {
				return err
			}
			folders := []string{".", filepath.Dir(args[0]), filepath.Dir(args[1])}
			if inputs != "" {
				folders = []string{inputs}
			}
			made, err := mcompress.Reproduce(c.Context, r, args[1], folders, t.requestLimits())
			if err != nil {
				return err
			}
			return t.printReproduction(r, made)
		},
	}
}

// printReproduction prints each file, and returns exit code 3 if one differs.
func (t *tool) printReproduction(r *report.Report, made *mcompress.Reproduction) error {
	if t.json {
		if err := t.encode(map[string]any{"identical": made.Identical(), "files": made.Files, "different": made.Different}); err != nil {
			return err
		}
	} else {
		for _, f := range r.Result.Files {
			fmt.Fprintf(t.stdout, "%s: %s\n", f.Name, same(f, made.Different))
		}
		if v := mcompress.Version(); v != r.Tool.Version && !made.Identical() {
			fmt.Fprintf(t.stdout, "the report is of version %s, this is %s\n", r.Tool.Version, v)
		}
	}
	if !made.Identical() {
		return exit{exitGate}
	}
	return nil
}

func same(f report.File, different []report.File) string {
	for _, d := range different {
		if d == f {
			return "differs"
		}
	}
	return "identical"
}
