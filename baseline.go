package mcompress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// noBaseline is the name of the baseline of a first result, which has none.
const noBaseline = "none"

// loadBaseline reads the baseline of the request; nil for none.
func (x *run) loadBaseline(ctx context.Context) (*report.Baseline, error) {
	return LoadBaseline(ctx, x.Baseline, x.BaselineOptional, x.Registry, x.Events)
}

// LoadBaseline reads the report of a baseline, a path or a reference to a registry; nil for an empty source. An
// optional one that does not exist yet, and the source "none", are a baseline without figures, with which gates are
// open. Of the events it uses Note and Warning.
func LoadBaseline(ctx context.Context, source string, optional bool, r Registry, e Events) (*report.Baseline, error) {
	switch source {
	case "":
		return nil, nil
	case noBaseline:
		return &report.Baseline{Name: noBaseline, None: true}, nil
	}
	found, err := readBaseline(ctx, source, r, e)
	if !optional || !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	e.note(fmt.Sprintf("%v: gates relative to the baseline of the policy are not evaluated", err))
	if !registry.IsReference(source) {
		source = filepath.Base(source)
	}
	return &report.Baseline{Name: source, None: true}, nil
}

// readBaseline reads the report of a baseline.
func readBaseline(ctx context.Context, source string, r Registry, e Events) (*report.Baseline, error) {
	if registry.IsReference(source) {
		ref, err := registry.Parse(source)
		if err != nil {
			return nil, err
		}
		r.warnInsecure(ref, e)
		_, rep, err := StoredReport(ctx, r.options(), ref)
		if err != nil {
			return nil, fmt.Errorf("the baseline: %w", err)
		}
		return report.NewBaseline(ref.String(), rep), nil
	}
	// A pipe is read where it is named; what is next to a model is a file.
	path, open := source, bounded.ReadFile
	if stem := report.Stem(path); stem != path {
		path, open = stem+report.JSONSuffix, bounded.ReadRegular
	}
	rep, err := readReport(path, open)
	if err != nil {
		return nil, fmt.Errorf("the baseline: %w", err)
	}
	return report.NewBaseline(filepath.Base(path), rep), nil
}

// readReport reads the JSON form of a report by the function that opens it.
func readReport(path string, open func(path string, limit int64) ([]byte, error)) (*report.Report, error) {
	text, err := open(path, evidence.MaxDocument)
	if err != nil {
		return nil, err
	}
	r, err := report.Open(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ErrNoReport is the error of an artifact without a report.
var ErrNoReport = errors.New("the artifact has no report")

// StoredReport reads the report of an artifact in a registry, without its files.
func StoredReport(ctx context.Context, o registry.Options,
	ref registry.Reference) (*registry.Stored, *report.Report, error) {
	s, err := registry.List(ctx, ref, o)
	if err != nil {
		return nil, nil, err
	}
	f, ok := s.Find(registry.ReportJSON)
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", ref, ErrNoReport)
	}
	text, err := s.Read(ctx, f, evidence.MaxDocument)
	if err != nil {
		return nil, nil, err
	}
	rep, err := report.Open(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", ref, f.Name, err)
	}
	return s, rep, nil
}
