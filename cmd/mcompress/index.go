package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/fleet"
	writtenindex "github.com/mcompress/mcompress/internal/index"
	"github.com/mcompress/mcompress/report"
)

// indexing has the flags of an index of the reports in a folder.
type indexing struct {
	from string
	log  string
}

func (x *indexing) flags(fs *flag.FlagSet) {
	fs.StringVar(&x.from, "files-from", "", "`file` of the list of models that were compressed, as that of quantize: models without a report are missing, and reports of other models are unlisted (default: not known)")
	fs.StringVar(&x.log, "log", "", "comma-separated `files` or patterns of the JSON lines of the runs (--json), in the order of the runs: the errors of models that failed (default: none)")
}

// isReportFolder reports whether a path is a folder of reports, on disk or in a bucket.
func isReportFolder(path string) bool {
	if mcli.IsURL(path) {
		return !strings.HasSuffix(path, ".json")
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// write writes the index of a folder, and ends with the exit code that a run of all its models would have.
func (x *indexing) write(ctx context.Context, t *tool, f *formatting, folder string) error {
	rs := mcli.Reports{Folder: folder, Index: folder, Workers: t.workers}
	switch {
	case f.format.Value == "" && f.output != "":
		return usagef("--output requires --format; without both, %s and %s are written into the folder", report.IndexJSON, report.IndexHTML)
	case f.output != "":
		rs.Index = filepath.Dir(f.output)
	}
	if err := x.read(ctx, &rs); err != nil {
		return err
	}
	index, err := rs.Read(ctx)
	switch {
	case err != nil:
		return err
	case x.from == "" && len(index.Entries) == 0:
		return fmt.Errorf("%s: no report", folder)
	}
	switch f.format.Value {
	case "":
		err = errors.Join(writtenindex.Write(ctx, folder, []string{"json", "html"}, true, index), t.printTotals(index))
	case "json":
		err = f.publish(t, writtenindex.ReportPaths(rs.Index, index), index.JSON)
	case "html":
		err = f.publish(t, writtenindex.ReportPaths(rs.Index, index), index.HTML)
	default:
		return usagef("--format %s is for one report; of a folder there are json and html", f.format.Value)
	}
	if err != nil {
		return err
	}
	return ended(indexCodes(index))
}

// read reads the list and the logs.
func (x *indexing) read(ctx context.Context, rs *mcli.Reports) error {
	if x.from != "" {
		list, err := mcompress.ReadList(ctx, x.from)
		if err != nil {
			return err
		}
		if rs.Models, err = fleet.Expand(list); err != nil {
			return &usageError{err}
		}
		// Nil is a list that is not known; with an empty one each report is of another model.
		if rs.Models == nil {
			rs.Models = []string{}
		}
	}
	if x.log == "" {
		return nil
	}
	logs, err := fleet.Expand(strings.Split(x.log, ","))
	if err != nil {
		return &usageError{err}
	}
	for _, path := range logs {
		if err := mcli.ReadLog(ctx, path, &rs.Log); err != nil {
			return err
		}
	}
	return nil
}

func (t *tool) printTotals(x *report.Index) error {
	if t.json {
		return t.encode(x.Totals)
	}
	return mcli.CountsText(t.stdout, x.Totals.Counts)
}

// indexCodes are the exit codes of the models.
func indexCodes(x *report.Index) (codes []int) {
	for _, e := range x.Entries {
		switch e.Status {
		case report.Failed:
			codes = append(codes, cmp.Or(e.ExitCode, exitIO))
		case report.Missing:
			codes = append(codes, exitIO)
		case report.Invalid:
			codes = append(codes, exitInput)
		case report.Rejected:
			codes = append(codes, exitGate)
		}
	}
	return codes
}
