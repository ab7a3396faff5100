package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/child"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// mostLayers is the default number of listed layers.
const mostLayers = 100

// defaultTrialSteps is the number of training steps that --measure and --compare run.
const defaultTrialSteps = 5

// trainingMemoryFlags are the flags of the memory plan of training. Those of the trainer are the options of finetune.
type trainingMemoryFlags struct {
	on        bool
	compare   bool
	watch     bool
	params    mcli.Quantity
	precision mcli.Enum
	zero      mcli.Enum
	devices   int
	trainer   *training
}

func newTrainingMemoryFlags() trainingMemoryFlags {
	return trainingMemoryFlags{
		precision: mcli.Enum{Value: "float32", Words: memory.PrecisionNames()},
		zero:      mcli.Enum{Value: "0", Words: []string{"0", "1", "2", "3"}},
		devices:   1,
		trainer:   newTraining(distill.FineTune{}.Method()),
	}
}

// withoutMemory are the options of finetune that do not affect memory. The number of steps is that of --measure and --compare.
var withoutMemory = []string{
	"epochs", "time", "seed", "patience", "lr", "momentum", "weight-decay", "schedule", "warmup", "label-smoothing", "temperature", "cache-teacher", "teacher-weights", "feature-weight",
	"augment", "save", "save-every", "resume",
}

func (f *trainingMemoryFlags) flags() []cli.Flag {
	f.trainer.w.flags() // declares those of the data, which QAT reads, too
	own := group("training", func(fs *flag.FlagSet) {
		fs.BoolVar(&f.on, "training", false, "memory of training instead of inference, as finetune with the same options takes it")
		fs.BoolVar(&f.watch, "watch", false, "run --steps steps (default: 5) and print the memory every second: resident, Go heap, arena in use by kind, samples")
		fs.BoolVar(&f.compare, "compare", false, "compare activation checkpointing, float16 storage (or --storage) and both with neither: memory, and time and loss of some steps")
	})
	estimate := group("training a number of parameters", func(fs *flag.FlagSet) {
		fs.Var(&f.params, "params", "`number` of parameters such as 7B, instead of a MODEL")
		fs.Var(&f.precision, "precision", "`name`: float32, mixed (16 bits with a float32 master copy), bfloat16 (all in 16 bits)")
		fs.Var(&f.zero, "zero", "ZeRO `stage`: 1 partitions optimizer state over devices, 2 also gradients, 3 also parameters")
		fs.IntVar(&f.devices, "devices", f.devices, "`number` of data-parallel devices")
	})
	options := slices.DeleteFunc(methodFlags(f.trainer.options.Offers(), nil), func(o cli.Flag) bool { return slices.Contains(withoutMemory, o.Names()[0]) })
	for _, o := range options {
		o.(*option).Category = "options of training"
	}
	return slices.Concat(own, estimate, options)
}

// given are the names of the options of training.
func (f *trainingMemoryFlags) given() []string {
	var names []string
	for _, o := range f.trainer.options.Given() {
		names = append(names, o.Name)
	}
	return names
}

// modelOptions are the given options of training that do not apply to a number of parameters.
func (f *trainingMemoryFlags) modelOptions() []string {
	return slices.DeleteFunc(f.given(), func(name string) bool { return name == "optimizer" })
}

// states prints the training memory of a number of parameters.
func (s *memoryFlags) states(t *tool) error {
	how := memory.Training{Optimizer: "adam", Precision: s.fit.precision.Value, ZeRO: slices.Index(s.fit.zero.Words, s.fit.zero.Value), Devices: s.fit.devices}
	for _, o := range s.fit.trainer.options.Given() {
		if o.Name == "optimizer" {
			how.Optimizer = o.Value
		}
	}
	states, err := how.States(int64(s.fit.params))
	if err != nil {
		return &usageError{err}
	}
	if t.json {
		return t.encode(states)
	}
	return mcli.States(t.stdout, t.style(), int64(s.fit.params), how, states)
}

// A trainingJob is a training of which the memory is planned, or which is tried in a process of its own.
type trainingJob struct {
	Model   string
	Options []pass.Option
	Workers int
	Limits  memory.Limits
	Steps   int
}

// trainingJob returns the job of the flags for a batch size; 0 for the default.
func (s *memoryFlags) trainingJob(t *tool, model string, batch int64) *trainingJob {
	j := &trainingJob{Model: model, Options: slices.Clone(s.fit.trainer.options.Given()), Workers: t.workers, Limits: t.limits(), Steps: defaultTrialSteps}
	if batch > 0 {
		j.Options = append(j.Options, pass.Option{Name: "batch", Value: fmt.Sprint(batch)})
	}
	var dims []string
	for name, n := range s.dims {
		dims = append(dims, fmt.Sprintf("%s=%d", name, n))
	}
	if len(dims) > 0 {
		slices.Sort(dims)
		j.Options = append(j.Options, pass.Option{Name: "dim", Value: strings.Join(dims, ",")})
	}
	return j
}

// trainer returns the training of the job.
func (j *trainingJob) trainer() (*memplan.Trainer, error) {
	tr := newTraining(distill.FineTune{}.Method())
	tr.w.flags()
	for _, o := range tr.options.Offers() {
		for _, given := range j.Options {
			if given.Name != o.Name {
				continue
			}
			if err := o.Value.Set(given.Value); err != nil {
				return nil, usagef("invalid value %q for --%s: %v", given.Value, given.Name, err)
			}
		}
	}
	step, err := tr.step(distill.FineTune{}.Method())
	if err != nil {
		return nil, err
	}
	train := *step.(*distill.FineTune)
	if train.Steps > 0 {
		j.Steps = train.Steps
	}
	before, later, err := tr.quantization()
	return &memplan.Trainer{Path: j.Model, Before: before, Train: train, Later: later, Workers: j.Workers, Limits: j.Limits}, err
}

// planTraining computes the memory plan of training and prints it.
func (s *memoryFlags) planTraining(ctx context.Context, t *tool, model string) error {
	if len(s.batches) == 0 {
		s.batches = append(s.batches, 0)
	}
	found := &mcli.TrainingPlans{Model: model, Budget: int64(s.budget), Top: s.top}
	var tr *memplan.Trainer
	job := &trainingJob{}
	for _, n := range s.batches {
		var err error
		job = s.trainingJob(t, model, n)
		if tr, err = job.trainer(); err != nil {
			return err
		}
		p, err := tr.Plan(ctx, distill.PlanOptions{Plain: s.plain})
		if err != nil {
			return err
		}
		found.Plans = append(found.Plans, p)
	}
	var err error
	switch {
	case s.fit.compare:
		found.Compared, err = tr.Compared(ctx)
	case s.budget > 0 || s.measure:
		found.Choices, err = tr.Choices(ctx, int64(s.budget))
	}
	if err != nil {
		return err
	}
	if s.measure || s.fit.compare {
		for _, c := range slices.Concat(found.Choices, found.Compared) {
			if s.budget > 0 && !c.Fits {
				continue
			}
			if c.Measured, err = job.try(ctx, c.Options); err != nil {
				return withModel(model, err)
			}
		}
	}
	return s.printTraining(t, found)
}

func (s *memoryFlags) printTraining(t *tool, found *mcli.TrainingPlans) error {
	if s.html != "" {
		if err := writeFrom(found.Model, s.html, func(w io.Writer) error { return trainingPage(found).HTML(w) }); err != nil {
			return err
		}
	}
	print := func() error { return found.Write(t.stdout, t.style()) }
	if t.json {
		print = func() error { return t.encode(found) }
	}
	if err := print(); err != nil {
		return err
	}
	if p := found.Plans[0]; p.Fixed && len(found.Plans) > 1 {
		t.warn("the batch axis of the model is fixed: batches are computed in micro-batches of %d samples", p.Batch/p.MicroBatches)
	}
	if s.budget > 0 && !slices.ContainsFunc(found.Choices, func(c *memplan.Choice) bool { return c.Largest > 0 }) {
		return exit{exitGate}
	}
	return nil
}

// trainingPage is the page of the last plan, with the memory of compared ones over time.
func trainingPage(found *mcli.TrainingPlans) *report.Memory {
	page := memplan.TrainingPage(filepath.Base(found.Model), found.Plans[len(found.Plans)-1])
	for _, c := range found.Compared {
		page.Compared = append(page.Compared, memplan.TrainingCurve(c))
	}
	return page
}

// measureTrainingCommand is the command that runs training steps in a process of its own, with the job as JSON on stdin.
const measureTrainingCommand = mcompress.MeasureCommand + "-training"

// try runs steps of the job with other options in a process of its own.
func (j *trainingJob) try(ctx context.Context, options []pass.Option) (*memplan.Measured, error) {
	other := *j
	other.Options = slices.DeleteFunc(slices.Clone(j.Options), func(o pass.Option) bool {
		return slices.ContainsFunc(options, func(p pass.Option) bool { return p.Name == o.Name })
	})
	other.Options = append(other.Options, options...)
	self, err := thisProgram(measureTrainingCommand)
	if err != nil {
		return nil, err
	}
	m := &memplan.Measured{}
	return m, child.Run(ctx, self, other, m)
}

// serveTrainingMeasurement runs the steps of a job in this process.
func serveTrainingMeasurement(ctx context.Context, in io.Reader, out io.Writer) error {
	return child.Serve(ctx, in, out, func(ctx context.Context, j trainingJob) (*memplan.Measured, error) {
		if j.Limits.Memory > 0 {
			limitMemory(j.Limits.Memory)
		}
		tr, err := j.trainer()
		if err != nil {
			return nil, inFlags(err)
		}
		if j.Steps < 1 {
			return nil, errors.New("no steps to measure")
		}
		return tr.Trial(ctx, j.Steps)
	}, exitCode)
}
