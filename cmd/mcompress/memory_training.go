package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/onnx"
)

// mostLayers is how many layers are listed unless --top says otherwise.
const mostLayers = 100

// fitting is how parameters are trained.
type fitting struct {
	on         bool
	params     mcli.Quantity
	optimizer  mcli.Enum
	precision  mcli.Enum
	checkpoint string
	zero       mcli.Enum
	devices    int
	offload    mcli.Formats
}

func newFitting() fitting {
	return fitting{
		optimizer:  mcli.Enum{Value: "adam", Words: memory.OptimizerNames()},
		precision:  mcli.Enum{Value: "float32", Words: memory.PrecisionNames()},
		zero:       mcli.Enum{Value: "0", Words: []string{"0", "1", "2", "3"}},
		checkpoint: "none", devices: 1,
		offload: mcli.Formats{Known: []string{"optimizer", "parameters"}},
	}
}

func (f *fitting) flags() []cli.Flag {
	return group("training", func(fs *flag.FlagSet) {
		fs.BoolVar(&f.on, "training", false, "memory of training instead of inference: parameters, gradients, optimizer, activations by layer")
		fs.Var(&f.params, "params", "`number` of parameters, as 7B, in place of a MODEL")
		fs.Var(&f.optimizer, "optimizer", "`name`: "+mcli.And(f.optimizer.Words))
		fs.Var(&f.precision, "precision", "`name`: float32, mixed (16 bits, and what the optimizer keeps in 32), bfloat16 (all in 16)")
		fs.StringVar(&f.checkpoint, "checkpoint", f.checkpoint, "`segments` whose activations are computed again: none, sqrt, every=N nodes")
		fs.Var(&f.zero, "zero", "`stage` of ZeRO: 1 divides the optimizer's states over devices, 2 gradients too, 3 parameters too")
		fs.IntVar(&f.devices, "devices", f.devices, "`number` of devices that train together; --batch is that of each")
		fs.Var(&f.offload, "offload", "`what` is kept in the host's memory, with commas: optimizer, parameters")
	})
}

// options are what the flags say.
func (f *fitting) options(s *seeing) memplan.TrainOptions {
	return memplan.TrainOptions{
		Training: memory.Training{
			Optimizer: f.optimizer.Value, Precision: f.precision.Value, ZeRO: slices.Index(f.zero.Words, f.zero.Value), Devices: f.devices,
			OffloadOptimizer: slices.Contains(f.offload.Chosen, "optimizer"), OffloadParameters: slices.Contains(f.offload.Chosen, "parameters"),
		},
		Batches: s.batches, Dims: s.dims, Checkpoint: f.checkpoint,
	}
}

// states prints what training a number of parameters holds.
func (t *tool) states(s *seeing) error {
	facts, err := memplan.TrainParameters(int64(s.fit.params), s.fit.options(s))
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(facts)
	}
	return mcli.States(t.stdout, t.style(), facts)
}

// planTraining plans a step of training, and prints what came of it.
func (t *tool) planTraining(ctx context.Context, f *onnx.File, s *seeing) error {
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
		t.warn("only parameters are known: %s", facts.Unplanned)
	}
	if facts.Fixed && len(s.batches) > 0 {
		t.warn("the model declares its batch: --batch changes nothing")
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
	return job.WriteFile(html, func(w *os.File) error { return page.HTML(w) })
}
