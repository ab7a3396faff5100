package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// baselineFlag is the flag --baseline.
type baselineFlag struct {
	source   string
	policy   bool // the policy names it: it may not exist yet
	recorded bool // the command reads reports, which have their baselines: that of the policy, which may be out of reach, is not read
}

// noBaseline is the value of --baseline for the first result, which has none.
const noBaseline = "none"

func (b *baselineFlag) declare(flags *flag.FlagSet) {
	flags.Var(b, "baseline", "`report` of an earlier result, the path of its model, or a reference such as mlflow://HOST/NAME@champion, for the gates that name a baseline; none leaves them out")
}

// Set implements flag.Value.
func (b *baselineFlag) Set(text string) error {
	b.source, b.policy = text, false
	return nil
}

// String implements flag.Value.
func (b *baselineFlag) String() string { return b.source }

// load reads the baseline; nil for none. A gate without its baseline is a usage error. One that the policy names and that does not exist yet, and
// the value none, are a baseline without figures.
func (b *baselineFlag) load(ctx context.Context, t *tool, command string, r *registryFlags, gates []report.Limit) (*report.Baseline, error) {
	switch {
	case b.source == noBaseline:
		return &report.Baseline{Name: noBaseline, None: true}, nil
	case b.source == "" && b.recorded:
		return nil, nil
	}
	found, err := b.read(ctx, t, command, r, gates)
	if !b.policy || !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	if !t.quiet {
		fmt.Fprintf(t.stderr, "mcompress: %s: %v: gates relative to the baseline of the policy are not evaluated\n", command, err)
	}
	name := b.source
	if !registry.IsReference(name) {
		name = filepath.Base(name)
	}
	return &report.Baseline{Name: name, None: true}, nil
}

// read reads the report of the baseline.
func (b *baselineFlag) read(ctx context.Context, t *tool, command string, r *registryFlags, gates []report.Limit) (*report.Baseline, error) {
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
	for _, gate := range report.GateNames() {
		if report.Relative(gate) && slices.ContainsFunc(gates, func(l report.Limit) bool { return l.Name == gate }) {
			return gate
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
