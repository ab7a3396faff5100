package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/internal/naming"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/report"
)

// Reports are the reports of a list of models, below a folder or URL of a bucket.
type Reports struct {
	Folder  string
	Models  []string // of the list; nil if it is not known
	Log     Log
	Index   string // the folder of the index, which paths in it are relative to
	Workers int
}

// downloads is the number of reports of a bucket that are read at a time.
const downloads = 16

// Read reads the reports one by one, and keeps their headline figures. A report that is not valid is an entry of the index, and so is a model of the list without a
// report.
func (rs *Reports) Read(ctx context.Context) (*report.Index, error) {
	var from documents = evidence.Folder(rs.Folder)
	parallel := rs.Workers
	if remote.Is(rs.Folder) {
		from, parallel = bucket(rs.Folder), max(parallel, downloads)
	}
	names, err := from.Names(ctx)
	if err != nil {
		return nil, err
	}
	found := evidence.Reports(names)
	models, err := rs.models(!slices.ContainsFunc(found, func(name string) bool { return strings.Contains(name, "/") }))
	if err != nil {
		return nil, err
	}
	entries := make([]report.Entry, len(found))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, parallel))
	for i, name := range found {
		g.Go(func() (err error) {
			entries[i], err = rs.entry(ctx, from, name, models.of(name))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rs.addPages(entries, names)
	x := &report.Index{Entries: append(entries, rs.withoutReport(entries)...)}
	x.Entries = slices.DeleteFunc(x.Entries, func(e report.Entry) bool { return e.Status == "" })
	x.Sort()
	return x, nil
}

// documents are the files below a folder, by slash-separated names.
type documents interface {
	Names(ctx context.Context) ([]string, error)
	Read(ctx context.Context, name string) ([]byte, error)
}

// A bucket is a folder in a bucket.
type bucket string

func (b bucket) Names(ctx context.Context) ([]string, error) { return remote.List(ctx, string(b)) }

func (b bucket) Read(ctx context.Context, name string) ([]byte, error) {
	return remote.ReadFile(ctx, remote.Join(string(b), name), evidence.MaxDocument)
}

// entry reads a report. The entry has no status if the report is gone, or if the last run of the model failed.
func (rs *Reports) entry(ctx context.Context, from documents, name, model string) (report.Entry, error) {
	if rs.Log.last[model].Result == report.Failed {
		return report.Entry{}, nil
	}
	text, err := from.Read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return report.Entry{}, nil
	case err != nil && !errors.Is(err, evidence.ErrAbsent):
		return report.Entry{}, err
	}
	var r *report.Report
	if err == nil {
		r, err = report.Open(text)
	}
	if err != nil {
		return report.Entry{Model: model, Status: report.Invalid, Error: Shown(err.Error()), Report: name}, nil
	}
	status := report.Written
	switch {
	case model == "" && rs.Models != nil:
		status = report.Unlisted
	case !r.Passed():
		status = report.Rejected
	case rs.Log.last[model].Result == report.UpToDate:
		status = report.UpToDate
	}
	return report.NewEntry(model, status, name, r), nil
}

// withoutReport are the models that failed, and those of the list that no entry is about.
func (rs *Reports) withoutReport(entries []report.Entry) []report.Entry {
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.Model] = e.Status != ""
	}
	var without []report.Entry
	for _, m := range slices.Concat(rs.Log.Models, rs.Models) {
		if m = remote.Shown(m); seen[m] {
			continue
		}
		seen[m] = true
		e := report.Entry{Model: m, Status: report.Missing}
		if f := rs.Log.last[m]; f.Result == report.Failed {
			e.Status, e.ExitCode, e.Error = f.Result, f.ExitCode, f.Error
		}
		without = append(without, e)
	}
	return without
}

// addPages names the HTML forms that are there, and makes paths relative to the folder of the index.
func (rs *Reports) addPages(entries []report.Entry, names []string) {
	there := map[string]bool{}
	for _, n := range names {
		there[n] = true
	}
	for i := range entries {
		e := &entries[i]
		if page := naming.PageOf(e.Report); there[page] {
			e.Page = rs.relative(page)
		}
		if e.Report != "" {
			e.Report = rs.relative(e.Report)
		}
	}
}

// relative is the path of a file below the folder from that of the index, or its whole path.
func (rs *Reports) relative(name string) string {
	if rs.Folder == rs.Index {
		return name
	}
	return naming.Relative(rs.Index, remote.Join(rs.Folder, name))
}

// listedModels are models by the names of their results: with their folders, and without.
type listedModels struct{ stems, bases map[string]string }

// models are those of the list and the log. flat is whether no report is in a folder.
func (rs *Reports) models(flat bool) (listedModels, error) {
	l := listedModels{map[string]string{}, map[string]string{}}
	for _, m := range slices.Concat(rs.Log.Models, rs.Models) {
		stem, err := naming.StemBelow(m)
		if err != nil {
			return l, err
		}
		m = remote.Shown(m)
		l.stems[stem] = m
		if !flat {
			continue
		}
		base := path.Base(stem)
		if other, taken := l.bases[base]; taken && other != m {
			m = "" // several
		}
		l.bases[base] = m
	}
	return l, nil
}

// of is the model of a report, NAME.LABEL.report.json below its folder; of all reports in one folder (--report-dir), the only model of that name. It is
// empty for none.
func (l listedModels) of(name string) string {
	stem := strings.TrimSuffix(name, report.JSONSuffix)
	start := strings.LastIndexByte(stem, '/') + 1
	for end := len(stem); end > start; end = start + max(0, strings.LastIndexByte(stem[start:end], '.')) {
		if m := cmp.Or(l.stems[stem[:end]], l.bases[stem[:end]]); m != "" {
			return m
		}
	}
	return ""
}
