package main

import (
	"flag"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/registry"
)

func pullCommand(t *tool) *cli.Command {
	r := &registryFlags{}
	var output string
	return &cli.Command{
		Name:      "pull",
		Usage:     "download a model with its external data and reports from a registry",
		ArgsUsage: "SOURCE",
		Description: `SOURCE is one of:
` + destinations + `
  oci://HOST/REPOSITORY@sha256:DIGEST

Every file is verified by its SHA-256 before any file appears in the folder. An interrupted pull resumes with the same command: until
then, hidden files of the folder have what was downloaded.

Example: mcompress pull -o models oci://registry.example.com/models/mlp:1.0`,
		Flags: slices.Concat(group("flags", func(fs *flag.FlagSet) {
			outPathVar(fs, &output, "output", "`folder` for the files (default: the last element of the repository's name)")
		}), group("registry", func(fs *flag.FlagSet) { r.declare(fs, "replace files that exist with other content") })),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			ref, err := parseReference(args[0])
			if err != nil {
				return err
			}
			dir, err := pullDir(ref, output)
			if err != nil {
				return &usageError{err}
			}
			o, stop := r.options(t, c.Command.Name, ref)
			defer stop()
			stored, err := registry.List(c.Context, ref, o)
			if err != nil {
				return err
			}
			pulled, err := stored.Pull(c.Context, dir, o)
			if err != nil {
				return err
			}
			if t.json {
				return t.encode(mcli.PulledFacts(pulled))
			}
			return mcli.Pulled(t.stdout, t.style(), pulled)
		},
	}
}
