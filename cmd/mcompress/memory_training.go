package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/onnx"
)

// mostLayers is the default number of listed layers.
const mostLayers = 100

// trainingMemoryFlags are the flags of the memory plan of training.
type trainingMemoryFlags struct {
	on         bool
	params     mcli.Quantity
	optimizer  mcli.Enum
	precision  mcli.Enum
	checkpoint string
	zero       mcli.Enum
	devices    int
	offload    mcli.Formats
}

func newTrainingMemoryFlags() trainingMemoryFlags {
	return trainingMemoryFlags{
		optimizer:  mcli.Enum{Value: "adam", Words: memory.OptimizerNames()},
		precision:  mcli.Enum{Value: "float32", Words: memory.PrecisionNames()},
		zero:       mcli.Enum{Value: "0", Words: []string{"0", "1", "2", "3"}},
		checkpoint: "none", devices: 1,
		offload: mcli.Formats{Known: []string{"optimizer", "parameters"}},
	}
}

func (f *trainingMemoryFlags) flags() []cli.Flag {
	return group("training", func(fs *flag.FlagSet) {
		fs.BoolVar(&f.on, "training", false, "memory of training instead of inference: parameters, gradients, optimizer, activations by layer")
		fs.Var(&f.params, "params", "`number` of parameters such as 7B, instead of a MODEL")
		fs.Var(&f.optimizer, "optimizer", "`name`: "+mcli.And(f.optimizer.Words))
		fs.Var(&f.precision, "precision", "`name`: float32, mixed (16 bits with a float32 master copy), bfloat16 (all in 16 bits)")
		fs.StringVar(&f.checkpoint, "checkpoint", f.checkpoint, "activation checkpointing: `segments` whose activations are recomputed: none, sqrt, every=N nodes")
		fs.Var(&f.zero, "zero", "ZeRO `stage`: 1 partitions optimizer state over devices, 2 also gradients, 3 also parameters")
		fs.IntVar(&f.devices, "devices", f.devices, "`number` of data-parallel devices; --batch is per device")
		fs.Var(&f.offload, "offload", "comma-separated `states` offloaded to host memory: optimizer, parameters")
	})
}

// options returns the options of the flags.
func (f *trainingMemoryFlags) options(s *memoryFlags) memplan.TrainOptions {
	return memplan.TrainOptions{
		Training: memory.Training{
			Optimizer: f.optimizer.Value, Precision: f.precision.Value, ZeRO: slices.Index(f.zero.Words, f.zero.Value), Devices: f.devices,
			OffloadOptimizer: slices.Contains(f.offload.Chosen, "optimizer"), OffloadParameters: slices.Contains(f.offload.Chosen, "parameters"),
		},
		Batches: s.batches, Dims: s.dims, Checkpoint: f.checkpoint,
	}
}

// states prints the training memory of a number of parameters.
func (s *memoryFlags) states(t *tool) error {
	facts, err := memplan.TrainParameters(int64(s.fit.params), s.fit.options(s))
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(facts)
	}
	return mcli.States(t.stdout, t.style(), facts)
}

// planTraining computes the memory plan of a training step and prints it.
func (s *memoryFlags) planTraining(ctx context.Context, t *tool, f *onnx.File) error {
	facts, err := memplan.Train(ctx, f, s.fit.options(s))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if s.html != "" {
		if err := writeTraining(f.Path, facts, s.html); err != nil {
			return err
		}
	}
	print := func() error { return mcli.Training(t.stdout, t.style(), f.Path, facts, s.top) }
	if t.json {
		print = func() error { return t.encode(facts) }
	}
	if err := print(); err != nil {
		return err
	}
	if facts.Unplanned != "" {
		t.warn("only parameters are planned: %s", facts.Unplanned)
	}
	if facts.Fixed && len(s.batches) > 0 {
		t.warn("the batch axis of the model is fixed: --batch has no effect")
	}
	return nil
}

func writeTraining(path string, facts *memplan.Training, html string) error {
	if facts.Unplanned != "" {
		return fmt.Errorf("%s: %s", path, facts.Unplanned)
	}
	page, err := facts.Page(filepath.Base(path))
	if err != nil {
		return err
	}
	return writeFrom(path, html, page.HTML)
}
