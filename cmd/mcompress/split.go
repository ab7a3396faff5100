package main

import (
	"context"
	"flag"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// splitFlags are the flags of split.
type splitFlags struct {
	stages int
	by     mcli.Enum
	output string
	digest mcli.Enum
	noSync bool
}

func balancing() mcli.Enum { return mcli.Enum{Value: partition.Costs()[0], Words: partition.Costs()} }

func splitCommand(t *tool) *cli.Command {
	s := &splitFlags{stages: 2, by: balancing(), digest: mcli.Enum{Value: "sha256", Words: []string{"sha256", "none"}}}
	return &cli.Command{
		Name:      "split",
		Usage:     "partition a model into pipeline stages for several devices, each a model of its own",
		ArgsUsage: "MODEL",
		Description: `Writes NAME.stage1.onnx and so on, and NAME.stages.json with the values between stages. Values are
passed by name; a value that skips a stage is passed directly to its consumers. The largest stage is
as small as possible, then the bytes across the cuts are minimal. To see the plan first:
mcompress memory --split N MODEL.`,
		Flags: group("flags", s.flags),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if s.stages < 1 {
				return usagef("--stages %d: must be a positive number", s.stages)
			}
			return s.write(c.Context, t, args[0])
		},
	}
}

func (s *splitFlags) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.stages, "stages", s.stages, "`number` of stages")
	outPathVar(fs, &s.output, "output", "`folder` for the stages (default: that of the model)")
	fs.Var(&s.by, "by", "`cost` that is balanced between stages: weights, activations, flops")
	fs.Var(&s.digest, "digest", "`digest` of files: sha256, none")
	fs.BoolVar(&s.noSync, "no-sync", false, "skip fsync")
}

func (s *splitFlags) write(ctx context.Context, t *tool, path string) error {
	dir := s.output
	if dir == "" {
		dir = filepath.Dir(path)
	}
	undo, err := atomicfile.MakeDir(dir)
	if err != nil {
		return err
	}
	defer undo()
	eval := ir.NewEval(dir)
	defer eval.Close()
	o := onnx.SaveOptions{Workers: t.workers, Memory: recipeBudget(int64(t.memory)), Digest: s.digest.Value != "none", Sync: !s.noSync, Eval: eval}
	if p := t.newProgress(path); p != nil {
		o.Progress = p.show
		defer p.stop()
	}
	written, err := partition.Write(ctx, path, dir, partition.Options{Stages: s.stages, By: s.by.Value}, o)
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(written)
	}
	return mcli.PartitionFiles(t.stdout, t.style(), path, written)
}
