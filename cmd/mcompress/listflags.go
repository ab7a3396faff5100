package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/fleet"
)

// listFlags are the flags of commands that compress many models, as tasks of a scheduler do.
type listFlags struct {
	mcompress.List
	from      string
	keepGoing bool
}

func (f *listFlags) flags() []cli.Flag {
	return group("many models", func(fs *flag.FlagSet) {
		fs.StringVar(&f.from, "files-from", "", "`file` of paths of models, patterns, URLs or references to registries, separated by newlines or NUL; - for standard input. Results in the folder of --output have the paths of the list")
		fs.Var((*shardFlag)(&f.Shard), "shard", "`index/count`, such as 0/16: compress only this part of the models, of about equal bytes (default with --files-from: that of the array job of Kubernetes, Slurm, GitLab, CircleCI, Buildkite, AWS Batch, Cloud Run or Google Batch, by their environment variables)")
		fs.BoolVar(&f.IfChanged, "if-changed", false, "skip models whose result is there: its report has the digests of source, options, inputs and files, and this version of mcompress")
		fs.BoolVar(&f.keepGoing, "keep-going", false, "compress the other models after one that failed or was rejected; this is the default for several models")
		fs.BoolVar(&f.FailFast, "fail-fast", false, "end after the first model that failed or was rejected")
	})
}

// listNames are the names of the flags of runs that write one result for each model.
var listNames = []string{"files-from", "shard", "if-changed", "keep-going", "fail-fast"}

// A shardFlag is the value of --shard.
type shardFlag string

// String is empty for a shard that is not given.
func (s *shardFlag) String() string { return string(*s) }

// Set accepts INDEX/COUNT.
func (s *shardFlag) Set(text string) error {
	_, err := fleet.ParseShard(text)
	*s = shardFlag(text)
	return err
}

// fill sets the fields of the flags.
func (f *listFlags) fill(l *mcompress.List) {
	*l = f.List
	l.KeepPaths = f.from != ""
}

// models returns the models of the arguments and of --files-from.
func (f *listFlags) models(c *cli.Context, args []string) ([]string, error) {
	switch {
	case f.FailFast && f.keepGoing:
		return nil, usagef("--keep-going and --fail-fast exclude each other")
	case f.from == "" && len(args) == 0:
		return nil, usagef("%s expected; see mcompress %s --help", c.Command.ArgsUsage, c.Command.Name)
	case f.from != "" && len(args) > 0:
		return nil, usagef("--files-from and %s exclude each other", args[0])
	}
	if f.from != "" {
		var err error
		if args, err = mcompress.ReadList(c.Context, f.from); err != nil {
			return nil, err
		}
	}
	// Here and not by the request alone: how errors are printed depends on the number of models.
	models, err := fleet.Expand(args)
	if err != nil {
		return nil, &usageError{err}
	}
	return models, nil
}
