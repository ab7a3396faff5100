package main

import (
	"context"
	"flag"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

// splitFlags are the flags of split.
type splitFlags struct {
	sampling
	stages int
	ranks  int
	by     mcli.Enum
	run    mcli.Enum
	output string
	digest mcli.Enum
	noSync bool
}

func balancing() mcli.Enum {
	return mcli.Enum{Value: mcompress.Balances()[0], Words: mcompress.Balances()}
}

func splitCommand(t *tool) *cli.Command {
	s := &splitFlags{stages: 2, by: balancing(), run: mcli.Enum{Words: []string{mcompress.RunSequential, mcompress.RunPiped}}, digest: mcli.Enum{Value: "sha256", Words: []string{"sha256", "none"}}}
	running := group("running the stages (with --run)", s.declare)
	return &cli.Command{
		Name:      "split",
		Usage:     "partition a model into pipeline stages or tensor-parallel shards for several devices",
		ArgsUsage: "MODEL",
		Description: `Writes NAME.stage1.onnx and so on, and NAME.stages.json with the values between stages. Values are
passed by name; a value that skips a stage is passed directly to its consumers. The largest stage is
as small as possible, then the bytes across the cuts are minimal. To see the plan first:
mcompress memory --split N MODEL.
--tensor-parallel N writes shards instead: the pairs of weights that the plan lists are divided by columns, heads and rows
over N ranks, and NAME.shards.json lists the values to sum over the ranks (all-reduce). --run then
runs each stage or rank in a process of its own, and compares the outputs with those of the whole model: those of stages are
bit-identical, sums over ranks are rounded differently.`,
		Flags: slices.Concat(group("flags", s.flags), running),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if err := s.check(c, running); err != nil {
				return err
			}
			return s.split(c.Context, t, args[0])
		},
	}
}

// check rejects invalid combinations of flags.
func (s *splitFlags) check(c *cli.Context, running []cli.Flag) error {
	switch {
	case s.stages < 1:
		return usagef("--stages %d: must be a positive number", s.stages)
	case c.IsSet("tensor-parallel") && s.ranks < 2:
		return usagef("--tensor-parallel %d: must be 2 or more", s.ranks)
	}
	for _, name := range []string{"stages", "by"} {
		if s.ranks > 0 && c.IsSet(name) {
			return usagef("--%s and --tensor-parallel exclude each other; split the stages, which are models", name)
		}
	}
	for _, f := range running {
		if name := f.Names()[0]; s.run.Value == "" && c.IsSet(name) {
			return usagef("--%s requires --run", name)
		}
	}
	return nil
}

func (s *splitFlags) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.stages, "stages", s.stages, "`number` of stages")
	fs.IntVar(&s.ranks, "tensor-parallel", 0, "`number` of ranks over which pairs of weights are divided, instead of stages")
	fs.Var(&s.run, "run", "run the stages in processes, each sample after the other or in a pipeline: `mode` sequential, piped")
	outPathVar(fs, &s.output, "output", "`folder` for the stages (default: that of the model)")
	fs.Var(&s.by, "by", "`cost` that is balanced between stages: weights, activations, flops")
	fs.Var(&s.digest, "digest", "`digest` of files: sha256, none")
	fs.BoolVar(&s.noSync, "no-sync", false, "skip fsync")
}

// split writes stages or shards, runs them with --run, and prints both.
func (s *splitFlags) split(ctx context.Context, t *tool, path string) error {
	folder := s.output
	if folder == "" {
		folder = filepath.Dir(path)
	}
	o := mcompress.SplitOptions{
		Ranks: s.ranks, NoDigests: s.digest.Value == "none", NoSync: s.noSync, Limits: t.requestLimits(),
	}
	if s.ranks == 0 {
		o.Stages, o.Balance = s.stages, s.by.Value
	}
	if p := t.newProgress(path); p != nil {
		o.Progress = p.show
		defer p.stop()
	}
	run, err := s.splitRun(t)
	if err != nil {
		return err
	}
	written, err := mcompress.Split(ctx, path, folder, o)
	if err != nil {
		return err
	}
	if s.run.Value != "" {
		if written.Run, err = run.Compare(ctx, path, written.Manifest); err != nil {
			return err
		}
	}
	r := &mcli.Split{Model: path, Split: written}
	if t.json {
		return t.encode(r)
	}
	return r.Text(t.stdout, t.style())
}

// splitRun is the run of --run, each stage or rank in a process of its own. Its data are checked before files are written.
func (s *splitFlags) splitRun(t *tool) (mcompress.SplitRun, error) {
	self, err := thisProgram(mcompress.StageCommand)
	if err != nil {
		return mcompress.SplitRun{}, err
	}
	r := mcompress.SplitRun{
		Data: s.samples(), Samples: s.random, Batch: s.size, Seed: s.seed,
		Piped: s.run.Value == mcompress.RunPiped, Program: self, Limits: t.requestLimits(),
	}
	return r, r.Check()
}
