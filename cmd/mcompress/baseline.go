package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// baselineFlag is the flag --baseline.
type baselineFlag struct{ source string }

func (b *baselineFlag) declare(fs *flag.FlagSet) {
	fs.StringVar(&b.source, "baseline", "", "`report` of an earlier result, the path of its model, or a reference such as mlflow://HOST/NAME@champion, for the gates that name a baseline")
}

// load reads the baseline; nil for none. A gate without its baseline is a usage error.
func (b *baselineFlag) load(ctx context.Context, t *tool, command string, r *registryFlags, gates []report.Limit) (*report.Baseline, error) {
	if b.source == "" {
		if gate := relativeGate(gates); gate != "" {
			return nil, usagef("--%s requires --baseline", gate)
		}
		return nil, nil
	}
	if relativeGate(gates) == "" {
		return nil, usagef("--baseline requires a gate relative to it, such as --max-baseline-size-ratio 1")
	}
	if registry.IsReference(b.source) {
		ref, err := parseReference(b.source)
		if err != nil {
			return nil, err
		}
		r.warn(t, command, ref)
		_, rep, err := storedReport(ctx, r.connection(), ref)
		if err != nil {
			return nil, fmt.Errorf("--baseline: %w", err)
		}
		return report.NewBaseline(ref.String(), rep), nil
	}
	path := b.source
	if stem := report.Stem(path); stem != path {
		path = stem + report.JSONSuffix
	}
	rep, err := openReport(path)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	return report.NewBaseline(filepath.Base(path), rep), nil
}

// relativeGate is the name of a gate relative to a baseline; "" if there is none.
func relativeGate(gates []report.Limit) string {
	for _, g := range gateFlags {
		for _, l := range gates {
			if g.relative && g.name == l.Name {
				return g.name
			}
		}
	}
	return ""
}

// storedReport reads the report of an artifact.
func storedReport(ctx context.Context, o registry.Options, ref registry.Reference) (*registry.Stored, *report.Report, error) {
	s, err := registry.List(ctx, ref, o)
	if err != nil {
		return nil, nil, err
	}
	f, ok := s.Find(registry.ReportJSON)
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", ref, errNoReport)
	}
	text, err := s.Read(ctx, f, evidence.MaxDocument)
	if err != nil {
		return nil, nil, err
	}
	rep, err := parseReport(ref.String()+": "+f.Name, text)
	return s, rep, err
}

var errNoReport = errors.New("the artifact has no report")
