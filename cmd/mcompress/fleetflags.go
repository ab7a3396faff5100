package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
)

// fleetFlags are the flags of commands that compress many models, as tasks of a scheduler do.
type fleetFlags struct {
	from      string
	shard     shardFlag
	ifChanged bool
	keepGoing bool
	failFast  bool
}

func (f *fleetFlags) flags() []cli.Flag {
	return group("many models", func(fs *flag.FlagSet) {
		fs.StringVar(&f.from, "files-from", "", "`file` of paths of models, patterns, URLs or references to registries, separated by newlines or NUL; - for standard input. Results in the folder of --output have the paths of the list")
		fs.Var(&f.shard, "shard", "`index/count`, such as 0/16: compress only this part of the models, of about equal bytes (default with --files-from: that of the array job of Kubernetes, Slurm, GitLab, CircleCI, Buildkite, AWS Batch, Cloud Run or Google Batch, by their environment variables)")
		fs.BoolVar(&f.ifChanged, "if-changed", false, "skip models whose result is there: its report has the digests of source, options, inputs and files, and this version of mcompress")
		fs.BoolVar(&f.keepGoing, "keep-going", false, "compress the other models after one that failed or was rejected; this is the default for several models")
		fs.BoolVar(&f.failFast, "fail-fast", false, "end after the first model that failed or was rejected")
	})
}

// listFlags are the flags of runs that write one result for each model.
var listFlags = []string{"files-from", "shard", "if-changed", "keep-going", "fail-fast"}

// A shardFlag is the value of --shard.
type shardFlag struct {
	fleet.Shard
	given bool
}

// String is empty for a shard that is not given.
func (s *shardFlag) String() string {
	if !s.given {
		return ""
	}
	return s.Shard.String()
}

// Set accepts INDEX/COUNT.
func (s *shardFlag) Set(text string) (err error) {
	s.Shard, err = fleet.ParseShard(text)
	s.given = true
	return err
}

// models returns the models of the arguments and of --files-from.
func (f *fleetFlags) models(c *cli.Context, args []string) ([]string, error) {
	switch {
	case f.failFast && f.keepGoing:
		return nil, usagef("--keep-going and --fail-fast exclude each other")
	case f.from == "" && len(args) == 0:
		return nil, usagef("%s expected; see mcompress %s --help", c.Command.ArgsUsage, c.Command.Name)
	case f.from != "" && len(args) > 0:
		return nil, usagef("--files-from and %s exclude each other", args[0])
	}
	if f.from != "" {
		var err error
		if args, err = readList(c.Context, f.from); err != nil {
			return nil, err
		}
	}
	models, err := fleet.Expand(args)
	if err != nil {
		return nil, &usageError{err}
	}
	return models, nil
}

// onlyFiles is an error if a model is not a file on disk.
func onlyFiles(flag string, models []string) error {
	if i := slices.IndexFunc(models, registry.IsReference); i >= 0 {
		return usagef("%s requires files: pull %s first", flag, models[i])
	}
	if i := slices.IndexFunc(models, remote.Is); i >= 0 {
		return usagef("%s requires files on disk: download %s first", flag, remote.Shown(models[i]))
	}
	return nil
}

// readList reads the list of --files-from.
func readList(ctx context.Context, path string) (list []string, err error) {
	err = readInput(ctx, path, func(in io.Reader) (err error) {
		if list, err = fleet.ReadList(in); err != nil {
			return fmt.Errorf("--files-from %s: %w", remote.Shown(path), err)
		}
		return nil
	})
	return list, err
}

// readInput reads a file of lines at a path or URL, or standard input for -.
func readInput(ctx context.Context, path string, read func(io.Reader) error) error {
	switch {
	case remote.Is(path):
		text, err := remote.ReadFile(ctx, path, fleet.MaxList)
		if err != nil {
			return err
		}
		return read(bytes.NewReader(text))
	case path == "-":
		return read(os.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// outputs are the paths of the results: those of the list, below the folder of --output.
func (f *fleetFlags) outputs(models []string, label, output string) ([]string, error) {
	if f.from == "" || output == "" {
		return mcli.Outputs(models, label, output)
	}
	return mcli.OutputsBelow(models, label, output)
}

// A listed is a model of the list and the path of its result.
type listed struct {
	model, output string
	staged        *staged // of a result at a URL, whose output is that on disk; nil for others
}

// published is the path or URL of the result.
func (l listed) published() string {
	if l.staged != nil {
		return l.staged.url
	}
	return l.output
}

// pick returns the models of this shard, and prints how many they are.
func (f *fleetFlags) pick(ctx context.Context, t *tool, command string, models, outs []string, connection registry.Options) (mine []listed, s mcli.Selected, err error) {
	shard := f.shard.Shard
	if !f.shard.given {
		shard = fleet.Whole
		if f.from != "" {
			if shard, err = fleet.FromEnvironment(os.Getenv); err != nil {
				return nil, s, &usageError{err}
			}
		}
	}
	s = mcli.Selected{Shard: shard, OfModels: len(models)}
	sizes := make([]int64, len(models))
	if shard.Count > 1 {
		if err := f.measure(ctx, models, sizes, connection); err != nil {
			return nil, s, err
		}
	}
	for _, n := range sizes {
		s.OfBytes += n
	}
	for i, k := range fleet.Assign(sizes, shard.Count) {
		if k == shard.Index {
			mine = append(mine, listed{model: models[i], output: outs[i]})
			s.Bytes += sizes[i]
		}
	}
	s.Models = len(mine)
	if shard.Count > 1 && !t.quiet && !t.json {
		fmt.Fprintf(t.stderr, "mcompress: %s: %s\n", command, s)
	}
	return mine, s, nil
}

// parallel is the number of files and artifacts whose sizes are read at a time.
const parallel = 16

// measure sets the sizes of models.
func (f *fleetFlags) measure(ctx context.Context, models []string, sizes []int64, connection registry.Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, m := range models {
		g.Go(func() (err error) {
			if registry.IsReference(m) {
				sizes[i], err = artifactBytes(ctx, m, connection)
				return err
			}
			sizes[i], err = modelBytes(ctx, m)
			return cmp.Or(err, context.Cause(ctx))
		})
	}
	return g.Wait()
}

// artifactBytes is the size of an artifact in a registry; 0 for one that is not there or not valid, of which the run reports the error. An error of the
// transfer is returned: with another size than that of the other workers, models would have no shard, or two.
func artifactBytes(ctx context.Context, model string, connection registry.Options) (int64, error) {
	ref, err := parseReference(model)
	if err != nil {
		return 0, err
	}
	s, err := registry.List(ctx, ref, connection)
	switch {
	case errors.Is(err, registry.ErrNotFound) || exitCode(err) == exitInput:
		return 0, nil
	case err != nil:
		return 0, err
	}
	var n int64
	for _, f := range s.Files {
		n += f.Size
	}
	return n, nil
}

// modelBytes is the size of the files of a model; 0 for one that cannot be read, of which the run reports the error. An error of a transfer is returned, as
// that of an artifact.
func modelBytes(ctx context.Context, path string) (int64, error) {
	f, err := remote.OpenModel(ctx, path)
	switch {
	case err != nil && remote.Is(path) && exitCode(err) == exitIO && !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case err != nil:
		if st, err := os.Stat(path); err == nil {
			return st.Size(), nil
		}
		return 0, nil
	}
	defer f.Close()
	return f.Size(), nil
}

// neutral are flags that do not change results.
var neutral = []string{
	"workers", "memory-limit", "quiet", "json", "color", "output", "no-sync", "dry-run", "files-from", "shard", "if-changed", "keep-going", "fail-fast", "grace", "restart",
	"trace", "save", "resume", "prefetch", "loaders", "report-dir", "export", "policy",
}

// recognized is the digest of the options of the run, by which --if-changed recognizes its results; empty without --if-changed.
func (w *writing) recognized(c *cli.Context, t *tool, steps []pass.Options) (string, error) {
	switch {
	case !w.fleet.ifChanged:
		return "", nil
	case w.digest.Value == "none" || !slices.Contains(w.formats.Chosen, "json"):
		return "", usagef("--if-changed requires the digests of JSON reports, which --report and --digest turn off")
	}
	return w.request(c, t, steps)
}

// request is the digest of the options of the run.
func (w *writing) request(c *cli.Context, t *tool, steps []pass.Options) (string, error) {
	o, err := w.job(c.Context, t, "", "", steps)
	if err != nil {
		return "", err
	}
	var given []pass.Option
	names := c.LocalFlagNames()
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(neutral, longName(name)) {
			given = append(given, pass.Option{Name: name, Value: fmt.Sprint(c.Generic(name))})
		}
	}
	if w.options != nil {
		for _, g := range w.options.Given() {
			if !slices.Contains(neutral, g.Name) {
				given = append(given, g)
			}
		}
	}
	return job.Request(c.Context, o, given)
}

// longName is the name of a flag, of which name may be the short one.
func longName(name string) string {
	for long, short := range shorts {
		if name == short {
			return long
		}
	}
	return name
}
