package mcompress

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/index"
	"github.com/mcompress/mcompress/internal/naming"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/report"
)

// A runIndex is the index of the reports of a run of a whole list into a folder; nil for others.
type runIndex struct {
	report.Index
	*run
	folder string
}

// newIndex is the index of the run; nil if it has none.
func (x *run) newIndex(s Selection) (*runIndex, error) {
	// Of a part of the list it would name the models of other workers as missing.
	if !x.List.KeepPaths || x.folder == nil || x.DryRun || s.Count > 1 || !slices.Contains(x.Reports.Formats, "json") {
		return nil, nil
	}
	i := &runIndex{folder: cmp.Or(x.Reports.Dir, x.Output), run: x}
	for _, name := range []string{report.IndexJSON, report.IndexHTML} {
		if !remote.Is(i.folder) {
			// Before hours of work: the index is written last.
			if err := atomicfile.Check(filepath.Join(i.folder, name)); err != nil {
				return nil, err
			}
		}
	}
	return i, nil
}

// Status is the status of a model in an index of reports and in lines of JSON: report.Written, Rejected, Failed and
// others.
func (o Outcome) Status() string {
	switch {
	case o.Err != nil:
		return report.Failed
	case o.Result.Rejected:
		return report.Rejected
	case o.Result.UpToDate:
		return report.UpToDate
	case o.Result.Output == "":
		return report.Planned
	}
	return report.Written
}

// add adds the outcome of a model.
func (i *runIndex) add(o Outcome) {
	if i == nil {
		return
	}
	if o.Err != nil {
		i.Entries = append(i.Entries, report.Entry{Model: o.Model, Status: report.Failed, ExitCode: ExitCode(o.Err),
			Error: o.Err.Error()})
		return
	}
	path := naming.Relative(i.folder, i.reportPath(o.Result.Output))
	e := report.NewEntry(o.Model, o.Status(), path, o.Result.Report)
	if slices.Contains(i.run.Reports.Formats, "html") {
		e.Page = naming.PageOf(path)
	}
	i.Entries = append(i.Entries, e)
}

// write writes the index. The models from the given one on are missing.
func (i *runIndex) write(ctx context.Context, rest []listed) error {
	if i == nil {
		return nil
	}
	for _, m := range rest {
		i.Entries = append(i.Entries, report.Entry{Model: remote.Shown(m.model), Status: report.Missing})
	}
	i.Sort()
	return index.Write(ctx, i.folder, i.run.Reports.Formats, !i.NoSync, &i.Index)
}
