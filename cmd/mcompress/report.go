package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/report"
)

func reportCommand(t *tool) *cli.Command {
	w := newRequestFlags()
	x := &indexing{}
	f := &formatting{format: mcli.Enum{Words: formatNames()}, card: &w.card}
	return &cli.Command{
		Name:      "report",
		Usage:     "compare two models: sizes, and each weight of A with that of B; write a report in another format; compare reports; or write the index of a folder of reports",
		ArgsUsage: "A B | REPORT.json... | FOLDER",
		Description: `Of two models, writes NAME_OF_B.vs.NAME_OF_A.report.FORMAT next to B. Of the JSON form of a report,
writes the same report as --format to standard output, or to the file of --output. Of several reports, writes their headline figures side
by side, with the Pareto front of file size and quality, in the formats json, md or html. Of a folder, on disk or s3://BUCKET/PREFIX/, writes
` + report.IndexJSON + " and " + report.IndexHTML + ` of all reports below it, the worst first, into the folder, or one of them as --format to standard output or to
the file of --output. The exit code is that of a run of all its models; missing ones are 1, and reports that are not valid 4. The formats:
` + formatTable(),
		Flags: slices.Concat(group("of a report", f.flags), group("of a folder of reports", x.flags), w.reportFlags(), w.gateFlags(func(fs *flag.FlagSet) { declareGates(fs, &w.Gates, onFiles) })),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, math.MaxInt)
			switch {
			case err != nil:
				return err
			case len(args) == 1 && isReportFolder(args[0]):
				return x.write(c.Context, t, f, args[0])
			case *x != indexing{}:
				return usagef("--files-from and --log are for a folder of reports")
			case len(args) > 1 && !slices.ContainsFunc(args, func(a string) bool { return !strings.HasSuffix(a, ".json") }):
				return f.writeRuns(t, args)
			case len(args) > 2:
				_, err := arguments(c, 1, 2)
				return err
			// One model alone: an error that names both arguments, not one of decoding a report.
			case len(args) == 1 && report.Stem(args[0]) != args[0]:
				_, err := arguments(c, 2, 2)
				return err
			case len(args) == 1:
				return f.write(c.Context, t, args[0])
			case f.format.Value != "" || f.output != "":
				return usagef("--format and --output are for the JSON form of a report; --report has the formats of a comparison")
			}
			r, err := w.request(t, c.Command.Name, args)
			if err != nil {
				return err
			}
			res, err := r.Compare(c.Context)
			var rejected *mcompress.RejectedError
			// A gate that does not hold is a result: it is printed, and then the exit code.
			if errors.As(err, &rejected) {
				res, err = rejected.Result, nil
			}
			if err != nil {
				return err
			}
			o := mcompress.Outcome{Model: args[0], Result: res}
			if err := t.conclude(mcli.Batch{{Outcome: o}}, false); err != nil {
				return err
			}
			return ended([]int{outcomeCode(o)})
		},
	}
}

// formatTable lists the formats.
func formatTable() string {
	var lines []string
	for _, f := range report.Formats() {
		lines = append(lines, fmt.Sprintf("  %-10s  %s, NAME%s", f.Name, f.Doc, f.Suffix))
	}
	return strings.Join(lines, "\n")
}

// formatting writes a report in another format.
type formatting struct {
	format mcli.Enum
	output string
	card   *cardFlags
}

func (f *formatting) flags(fs *flag.FlagSet) {
	fs.Var(&f.format, "format", "`format`: "+strings.Join(f.format.Words, ", ")+" (default: md; of a folder, html and json as files in it)")
	outPathVar(fs, &f.output, "output", "`path` of the file to write (default: standard output)")
}

func (f *formatting) write(ctx context.Context, t *tool, path string) error {
	if f.format.Value == "" {
		f.format.Value = "md"
	}
	card, err := f.card.card(f.format.Value)
	if err != nil {
		return err
	}
	r, err := openReport(path)
	if err != nil {
		return err
	}
	format, _ := report.FormatNamed(f.format.Value)
	return f.publish(t, []string{path}, func(w io.Writer) error { return format.Write(r, w, card) })
}

// writeRuns writes several reports side by side.
func (f *formatting) writeRuns(t *tool, paths []string) error {
	runs := &report.Runs{}
	write, known := map[string]func(io.Writer) error{"": runs.Markdown, "md": runs.Markdown, "json": runs.JSON, "html": runs.HTML}[f.format.Value]
	if !known {
		return usagef("--format %s is for one report; of several there are json, md and html", f.format.Value)
	}
	for _, path := range paths {
		r, err := openReport(path)
		if err != nil {
			return err
		}
		runs.Add(path, r)
	}
	return f.publish(t, paths, write)
}

// publish writes to the output, with the permissions of the given files.
func (f *formatting) publish(t *tool, sources []string, write func(io.Writer) error) error {
	if f.output != "" {
		access, err := atomicfile.Like(sources...)
		if err != nil {
			return err
		}
		return atomicfile.Write(f.output, access, write)
	}
	if isTerminal(t.stdout) {
		return write(t.stdout)
	}
	return write(t.stdout.Unwrap()) // the bytes that --output would have
}

// openReport reads the JSON form of a report. One that was edited is an error.
func openReport(path string) (*report.Report, error) {
	text, err := bounded.ReadFile(path, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	r, err := parseReport(path, text)
	if err != nil {
		return nil, err
	}
	r.Environment, err = openEnvironment(strings.TrimSuffix(path, report.JSONSuffix) + ".environment.json")
	return r, err
}

// openEnvironment reads the environment of a run; nil if there is none.
func openEnvironment(path string) (*report.Environment, error) {
	text, err := bounded.ReadRegular(path, math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	e := &report.Environment{}
	if err == nil {
		err = bounded.JSON(text, e)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// parseReport decodes the JSON form of a report.
func parseReport(path string, text []byte) (*report.Report, error) {
	r, err := report.Open(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
