package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
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
	if remote.Is(path) {
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
		err = errors.Join(writeIndex(ctx, folder, []string{"json", "html"}, true, index), t.printTotals(index))
	case "json":
		err = f.publish(t, reportPaths(rs.Index, index), index.JSON)
	case "html":
		err = f.publish(t, reportPaths(rs.Index, index), index.HTML)
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
		list, err := readList(ctx, x.from)
		if err != nil {
			return err
		}
		if rs.Models, err = fleet.Expand(list); err != nil {
			return &usageError{err}
		}
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
		if err := readInput(ctx, path, rs.Log.Read); err != nil {
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

// reportPaths are the paths on disk of the reports of an index.
func reportPaths(folder string, x *report.Index) (paths []string) {
	for _, e := range x.Entries {
		if e.Report != "" && !remote.Is(folder) && !remote.Is(e.Report) {
			paths = append(paths, filepath.Join(folder, filepath.FromSlash(e.Report)))
		}
	}
	return paths
}

// writeIndex writes the forms of an index into a folder, on disk or in a bucket, where they appear together.
func writeIndex(ctx context.Context, folder string, formats []string, sync bool, x *report.Index) (err error) {
	place := folder
	if remote.Is(folder) {
		temporary, failed := atomicfile.NewFolder("")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, temporary.Close()) }()
		place = temporary.Path
	}
	access, err := atomicfile.Like(reportPaths(folder, x)...)
	if err != nil {
		return err
	}
	set := &atomicfile.Set{Access: access, Sync: sync}
	defer func() { err = errors.Join(err, set.Close()) }()
	var files []remote.Upload
	for _, form := range []struct {
		format, name string
		write        func(io.Writer) error
	}{{"json", report.IndexJSON, x.JSON}, {"html", report.IndexHTML, x.HTML}} {
		if !slices.Contains(formats, form.format) {
			continue
		}
		path := filepath.Join(place, form.name)
		if err := set.WriteFile(path, form.write); err != nil {
			return err
		}
		files = append(files, remote.Upload{Path: path, URL: remote.Join(folder, form.name)})
	}
	if err := set.Publish(files[len(files)-1].Path); err != nil || !remote.Is(folder) {
		return err
	}
	return remote.Publish(ctx, files)
}

// An indexed is the index of the list of this run.
type indexed struct {
	report.Index
	folder string // of the index
	w      *writing
}

// newIndexed is the index of a run of a whole list into a folder; nil for others.
func (w *writing) newIndexed(selected mcli.Selected) (*indexed, error) {
	if w.stream == nil || w.folder == nil || w.dryRun || selected.Count > 1 || !slices.Contains(w.formats.Chosen, "json") {
		return nil, nil
	}
	x := &indexed{folder: cmp.Or(w.reportDir, w.output), w: w}
	for _, name := range []string{report.IndexJSON, report.IndexHTML} {
		if !remote.Is(x.folder) {
			if err := atomicfile.Check(filepath.Join(x.folder, name)); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// add adds the outcome of a model.
func (x *indexed) add(o mcli.Outcome) {
	if x == nil {
		return
	}
	path := ""
	if o.Err == nil {
		path = mcli.Relative(x.folder, (&job.Options{ReportDir: x.w.reportDir}).ReportPath(o.Result.Output, report.JSONSuffix))
	}
	x.Entries = append(x.Entries, mcli.OutcomeEntry(o, outcomeCode(o), path, slices.Contains(x.w.formats.Chosen, "html")))
}

// write writes the index. The models from the given one on are missing.
func (x *indexed) write(ctx context.Context, rest []listed) error {
	if x == nil {
		return nil
	}
	for _, m := range rest {
		x.Entries = append(x.Entries, report.Entry{Model: remote.Shown(m.model), Status: report.Missing})
	}
	x.Sort()
	return writeIndex(ctx, x.folder, x.w.formats.Chosen, !x.w.noSync, &x.Index)
}
