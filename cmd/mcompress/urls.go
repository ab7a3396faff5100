package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// readsURLs are the commands whose arguments may be URLs of object storage and web servers.
var readsURLs = []string{"quantize", "prune", "sparse", "distill", "finetune", "apply", "inspect", "bench", "memory", "verify", "plan", "work", "finalize"}

// onDisk is an error for arguments that are URLs, of a command that needs files on disk. Those of reports may be in a bucket.
func onDisk(c *cli.Context) error {
	args := c.Args().Slice()
	if c.Command.Name == "report" && len(args) == 1 && isReportFolder(args[0]) {
		return nil
	}
	if i := slices.IndexFunc(args, mcli.IsURL); i >= 0 && !slices.Contains(readsURLs, c.Command.Name) {
		return usagef("%s requires files on disk: download %s first", c.Command.Name, mcli.Shown(args[i]))
	}
	return nil
}
