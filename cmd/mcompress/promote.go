package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
)

func promoteCommand(t *tool) *cli.Command {
	p := &evidenceFlags{}
	return &cli.Command{
		Name:      "promote",
		Usage:     "move an alias or tag of a registry to a model whose report passes all gates",
		ArgsUsage: "REFERENCE ALIAS",
		Description: `Verifies the report of REFERENCE as verify-report does, evaluates the gates on it, and lets ALIAS name the
model if all hold; else the exit code is 3 and the alias stays. Gates that name a baseline compare with the model that has the
alias now, or with --baseline. Content is not transferred.

Example: mcompress promote --max-baseline-size-ratio 1 mlflow://127.0.0.1:5000/digits@candidate champion`,
		Flags: slices.Concat(group("flags", func(fs *flag.FlagSet) {
			p.declareSignature(fs)
			declareConnection(fs, &p.Registry)
		}), group("gates (if one does not hold: exit code 3)", p.declareGates)),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			promoted, err := mcompress.Promote(c.Context, args[0], args[1], p.evidence(t, c.Command.Name))
			if err != nil {
				return err
			}
			if err := t.printEvidence(promoted.Verdicts); err != nil {
				return err
			}
			switch {
			case promoted.Moved == nil:
				return exit{exitGate}
			case t.json:
				return nil
			}
			_, err = fmt.Fprintf(t.stdout, "%s is now %s (report %.12s…)\n", promoted.Moved, promoted.Digest, promoted.Report.Digest)
			return err
		},
	}
}
