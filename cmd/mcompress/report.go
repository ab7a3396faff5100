package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
)

func reportCommand(t *tool) *cli.Command {
	w := newWriting()
	return &cli.Command{
		Name:        "report",
		Usage:       "compare two models: sizes, and each weight of A with that of B",
		ArgsUsage:   "A B",
		Description: `Writes NAME_OF_B.vs.NAME_OF_A.report.FORMAT next to B.`,
		Flags:       slices.Concat(w.reportFlags(), w.gateFlags(nil)),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			res, err := job.Compare(c.Context, job.Options{
				Input: args[0], Output: args[1], Workers: t.workers,
				Digest: w.digest.Value != "none", Gates: w.gates,
				Reports: w.formats.Chosen, ReportDir: w.reportDir,
			})
			if err != nil {
				return err
			}
			return w.conclude(t, mcli.Batch{{Model: args[0], Result: res}})
		},
	}
}
