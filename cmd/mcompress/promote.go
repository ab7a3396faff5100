package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// promotion has the flags of promote.
type promotion struct {
	registryFlags
	signatureFlags
	baselineFlag
	gates       []report.Limit
	allowRandom bool // gates on outputs of random inputs
}

func promoteCommand(t *tool) *cli.Command {
	p := &promotion{}
	return &cli.Command{
		Name:      "promote",
		Usage:     "move an alias or tag of a registry to a model whose report passes all gates",
		ArgsUsage: "REFERENCE ALIAS",
		Description: `Verifies the report of REFERENCE as verify-report does, evaluates the gates on it, and lets ALIAS name the
model if all hold; else the exit code is 3 and the alias stays. Gates that name a baseline compare with the model that has the
alias now, or with --baseline. Content is not transferred.

Example: mcompress promote --max-baseline-size-ratio 1 mlflow://127.0.0.1:5000/digits@candidate champion`,
		Flags: slices.Concat(group("flags", func(fs *flag.FlagSet) {
			p.signatureFlags.declare(fs)
			p.connect(fs)
		}), group("gates (if one does not hold: exit code 3)", func(fs *flag.FlagSet) {
			declareGates(fs, &p.gates, everyGate)
			allowRandomFlag(fs, &p.allowRandom)
			p.baselineFlag.declare(fs)
		})),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			ref, err := parseReference(args[0])
			if err != nil {
				return err
			}
			if err := p.open(); err != nil {
				return err
			}
			return p.run(c.Context, t, ref, args[1])
		},
	}
}

func (p *promotion) run(ctx context.Context, t *tool, ref registry.Reference, alias string) error {
	p.warn(t, "promote", ref)
	stored, rep, err := mcompress.StoredReport(ctx, p.connection(), ref)
	if err != nil {
		return err
	}
	limits, err := p.against(ctx, t, ref, alias)
	if err != nil {
		return err
	}
	files := evidence.Stored{Stored: stored}
	results, err := all(ctx, files, limits)
	if err != nil {
		return err
	}
	if results == nil {
		return fmt.Errorf("%s: %w", ref, mcompress.ErrNoReport) // the report has another name
	}
	if err := p.ofStored(ctx, files, results[0]); err != nil {
		return err
	}
	if err := t.printEvidence(results); err != nil {
		return err
	}
	if slices.ContainsFunc(results, func(r *evidence.Result) bool { return !r.Matches() }) {
		return exit{exitGate}
	}
	moved, err := registry.Move(ctx, ref, alias, p.connection())
	if err != nil {
		return err
	}
	if t.json {
		return nil
	}
	_, err = fmt.Fprintf(t.stdout, "%s is now %s (report %.12s…)\n", moved, stored.Digest, rep.Digest)
	return err
}

// against returns the gates with their baseline: that of the flag, else the model that has the alias. Where there is none yet, gates
// relative to it are left out.
func (p *promotion) against(ctx context.Context, t *tool, ref registry.Reference, alias string) (evidence.Limits, error) {
	limits := evidence.Limits{Gates: p.gates, AllowRandomInputs: p.allowRandom}
	if p.source != "" || mcompress.RelativeGate(p.gates) == "" {
		var err error
		limits.Baseline, err = p.load(ctx, t, "promote", p.Registry, p.gates)
		return limits, err
	}
	champion := ref
	champion.Tag, champion.Digest = alias, ""
	_, rep, err := mcompress.StoredReport(ctx, p.connection(), champion)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		limits.Baseline = &report.Baseline{Name: champion.String(), None: true}
		if !t.quiet {
			fmt.Fprintf(t.stderr, "mcompress: promote: no model is %s yet: gates relative to it are not evaluated\n", champion)
		}
		return limits, nil
	case err != nil:
		return limits, err
	}
	limits.Baseline = report.NewBaseline(champion.String(), rep)
	return limits, nil
}
