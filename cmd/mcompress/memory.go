package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/atomicfile"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/report"
)

// memoryFlags are the flags of the memory plan and its output.
type memoryFlags struct {
	batches mcli.Counts
	dims    mcli.Dims
	budget  mcli.Size
	layout  bool
	measure bool
	plain   bool
	top     int
	html    string
	fit     trainingMemoryFlags
	split   int
	by      mcli.Enum
}

func memoryCommand(t *tool) *cli.Command {
	s := &memoryFlags{top: 10, fit: newTrainingMemoryFlags(), by: balancing()}
	return &cli.Command{
		Name:      "memory",
		Usage:     "compute the memory plan of inference or training: weights, activations over time, by batch size",
		ArgsUsage: "MODEL",
		Description: `Computes the memory plan without running the model or reading its weights. The total is that of the
embedded engine: weights, inputs, outputs, and the arena of activations and scratch, which depends on
--workers. With --budget, exit code 3 means that no batch fits. --training plans what finetune takes with
the same options, with one worker thread. --params replaces the MODEL.`,
		Flags: distinct(group("flags", s.flags), s.fit.flags(), group("several devices", s.splitFlags)),
		Action: func(c *cli.Context) error {
			if err := s.check(c); err != nil {
				return err
			}
			if s.fit.params > 0 {
				return s.states(t)
			}
			if s.fit.watch {
				return s.watchTraining(c.Context, t, c.Args().First())
			}
			if s.fit.on {
				return s.planTraining(c.Context, t, c.Args().First())
			}
			if s.split > 0 {
				return s.planSplit(c.Context, t, c.Args().First())
			}
			return s.planMemory(c.Context, t, c.Args().First())
		},
	}
}

// check rejects invalid combinations of flags.
func (s *memoryFlags) check(c *cli.Context) error {
	models := 1
	if s.fit.params > 0 {
		models = 0
	}
	if _, err := arguments(c, models, models); err != nil {
		return err
	}
	switch {
	case s.top < 0:
		return usagef("--top %d: must be a positive number", s.top)
	case s.split < 0 || c.IsSet("split") && s.split == 0:
		return usagef("--split %d: must be a positive number", s.split)
	case s.fit.devices < 1:
		return usagef("--devices %d: must be a positive number", s.fit.devices)
	case s.fit.on && !c.IsSet("top"):
		s.top = mostLayers
	}
	return s.checkModes(c)
}

// checkModes rejects flags that do not apply to the requested plan.
func (s *memoryFlags) checkModes(c *cli.Context) error {
	for _, mode := range []struct {
		on      bool
		name    string
		without []string // flags that require it
		with    []string // flags that it excludes
	}{
		{s.fit.on, "training", append(s.fit.given(), "params", "compare", "watch"), []string{"split", "layout"}},
		{s.fit.watch, "watch", nil, []string{"budget", "measure", "plain", "compare", "html", "params"}},
		{s.split > 0, "split", []string{"by"}, []string{"budget", "layout", "plain", "html"}},
		{s.fit.params > 0, "params", []string{"precision", "zero", "devices"}, append(s.fit.modelOptions(), "batch", "dim", "html", "top", "budget", "measure", "plain", "compare")},
		{s.fit.compare, "compare", nil, []string{"budget", "measure", "plain"}},
	} {
		flags, text := mode.without, "--%s requires --%s"
		if mode.on {
			flags, text = mode.with, "--%s and --%s exclude each other"
		}
		for _, name := range flags {
			if c.IsSet(name) {
				return usagef(text, name, mode.name)
			}
		}
	}
	return nil
}

func (s *memoryFlags) flags(fs *flag.FlagSet) {
	fs.Var(&s.batches, "batch", "comma-separated batch `sizes` (default: 1, for training 32); details are of the last one")
	dimFlag(fs, &s.dims)
	fs.Var(&s.budget, "budget", "memory budget, a `size`: finds the largest batch within it, for training with each combination of the given memory savings")
	fs.BoolVar(&s.layout, "layout", false, "count the transposes and copies of a channels-last layout (NHWC)")
	fs.BoolVar(&s.measure, "measure", false, "run the model once on random inputs and compare with the plan; with --training: run steps of each combination of memory savings; with --split: measure the time of each stage")
	fs.BoolVar(&s.plain, "plain", false, "without operator fusion")
	fs.IntVar(&s.top, "top", s.top, "maximum `number` of listed values at the peak, of layers in training (default there: 100), or of pairs of weights")
	outPathVar(fs, &s.html, "html", "`path` of an HTML page with charts of memory over time")
}

// planMemory computes the memory plan and prints it.
func (s *memoryFlags) planMemory(ctx context.Context, t *tool, path string) error {
	o := mcompress.MemoryOptions{
		Limits: t.requestLimits(), Batches: s.batches, Dims: s.dims, Budget: int64(s.budget),
		Layout: s.layout, Measure: s.measure, Plain: s.plain,
	}
	if s.html != "" {
		o.Page = &report.Memory{}
	}
	plan, err := mcompress.PlanMemory(ctx, path, o)
	if err != nil {
		return err
	}
	path = mcli.Shown(path)
	if plan.Unplanned != "" && (s.html != "" || s.budget > 0 || s.layout || s.measure) {
		return fmt.Errorf("%s: %s", path, plan.Unplanned)
	}
	if s.html != "" {
		if err := writeFrom(path, s.html, o.Page.HTML); err != nil {
			return err
		}
	}
	if t.json {
		err = t.encode(plan)
	} else {
		err = mcli.MemoryPlan(t.stdout, t.style(), path, plan, s.top)
	}
	if err != nil {
		return err
	}
	if plan.Unplanned != "" {
		t.warn("only weights are planned: %s", plan.Unplanned)
	}
	if plan.Fixed && len(s.batches) > 0 {
		t.warn("the batch axis of the model is fixed: --batch has no effect")
	}
	if b := plan.Budget; b != nil && b.Batch == 0 {
		return exit{exitGate}
	}
	return nil
}

// warn prints a warning about a plan that may differ from the requested one.
func (t *tool) warn(format string, args ...any) {
	if !t.quiet {
		fmt.Fprintf(t.stderr, "mcompress: memory: "+format+"\n", args...)
	}
}

// writeFrom writes a file that is derived from a model.
func writeFrom(model, path string, write func(io.Writer) error) error {
	access, err := atomicfile.Like(model)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, access, write)
}
