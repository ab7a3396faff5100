package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/latency"
)

// bothBackends is the value of --backend for the two that measure, one after the other.
const bothBackends = "both"

// benchFlags are the flags of bench.
type benchFlags struct {
	latency.Job
	randomInputFlags
	*backendFlags
	batches  mcli.Counts
	budget   mcli.Size
	onOOM    mcli.Enum
	profile  bool
	training bool
	trace    string
}

func benchCommand(t *tool) *cli.Command {
	b := &benchFlags{
		Job:          latency.Job{Runs: 10, Warmup: 3, Time: time.Second, Prompt: 128},
		backendFlags: newBackendFlags(bothBackends),
		onOOM:        mcli.Enum{Value: "fail", Words: []string{"fail", "halve"}},
		batches:      mcli.Counts{1},
	}
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure latency, throughput and peak memory of one model or two",
		ArgsUsage: "A [B]",
		Description: `Each model runs on random inputs, on each backend and batch size in a separate process, whose peak
memory is measured. With two models, a ratio above 1 means that B is better. Times are of one run;
bytes are resident memory, including that of the process before the model is loaded. Of several batch
sizes the knee is printed: the smallest with at least 95 % of the most samples per second.`,
		Flags: group("flags", b.flags),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			if err := b.check(c, models); err != nil {
				return err
			}
			if b.Decode > 0 && !c.IsSet("runs") {
				b.Runs = decodings
			}
			o, err := b.benchmark(t, models)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			b.Workers, b.Budget, b.Dims, b.Seed, b.Cache = t.workers, int64(b.budget), b.dims, b.seed, b.cache
			b.Limits.Steps = t.maxSteps
			if t.limited {
				b.Limits.Memory = int64(t.memory)
			}
			if b.training {
				return b.measureTraining(c.Context, t, models)
			}
			if b.profile {
				return b.printProfiles(c.Context, t, models)
			}
			return b.measure(c.Context, t, o)
		},
	}
}

// decodings is the default of --runs with --decode: one run has many steps.
const decodings = 3

func (b *benchFlags) flags(fs *flag.FlagSet) {
	b.backendFlags.declare(fs)
	b.randomInputFlags.declare(fs)
	fs.Var(&b.batches, "batch", "comma-separated batch `sizes`")
	fs.IntVar(&b.Runs, "runs", b.Runs, "minimum `number` of timed runs")
	fs.DurationVar(&b.Time, "time", b.Time, "minimum total `time` of the timed runs")
	fs.IntVar(&b.Warmup, "warmup", b.Warmup, "`number` of warm-up runs")
	fs.Var(&b.budget, "budget", "memory budget of a run, a `size`")
	fs.Var(&b.onOOM, "on-oom", "`action` for a run beyond the budget: fail, halve (the batch)")
	fs.IntVar(&b.Decode, "decode", 0, "decode this `number` of tokens one by one after a prompt, with the keys and values of those before (language models): tokens per second of both")
	fs.IntVar(&b.Prompt, "prompt", b.Prompt, "`number` of tokens of the prompt of --decode")
	fs.BoolVar(&b.profile, "profile", false, "print the time of each operator and node")
	fs.BoolVar(&b.training, "training", false, "measure steps of finetune with its default options on random samples, by batch size: time, samples per second, peak memory")
	outPathVar(fs, &b.trace, "trace", "`file` for the profile as a trace for Chrome's and Perfetto's viewers")
}

// check rejects combinations of flags that the library does not know: of modes, and of flags that are given but have no
// effect. Those of values are Benchmark.Check.
func (b *benchFlags) check(c *cli.Context, models []string) error {
	if b.training {
		for _, name := range []string{"profile", "budget", "backend", "on-oom", "time", "dim", "seed", "cache"} {
			if c.IsSet(name) {
				return usagef("--training and --%s exclude each other", name)
			}
		}
	}
	switch {
	case b.Prompt == 0: // the default of the library
		return usagef("--decode and --prompt must be positive")
	case b.library != "" && b.embedded():
		return usagef("--ort-lib requires --backend %s", strings.Join(b.backend.Words[1:], " or "))
	case b.Decode == 0 && c.IsSet("prompt"):
		return usagef("--prompt requires --decode")
	case b.Decode > 0 && (b.training || b.profile || b.budget > 0):
		return usagef("--decode excludes --training, --profile and --budget")
	case b.trace != "" && !b.profile:
		return usagef("--trace requires --profile")
	case !b.profile:
		return nil
	case b.trace != "" && len(models)*len(b.batches) > 1:
		return usagef("--trace requires one model and one batch size")
	case !b.embedded():
		return usagef("--profile requires the embedded backend")
	case b.budget > 0:
		return usagef("--budget and --profile exclude each other")
	}
	return nil
}

// measure measures every model on every backend at every batch size.
func (b *benchFlags) measure(ctx context.Context, t *tool, o mcompress.Benchmark) error {
	all, err := o.Measure(ctx)
	var over *mcompress.BudgetError
	switch {
	case errors.As(err, &over) && b.onOOM.Value == "fail" && over.Batch > 1:
		return fmt.Errorf("%w; --on-oom halve finds one that fits", err)
	case err != nil:
		return err
	}
	if t.json {
		return t.encode(all)
	}
	return mcli.Bench(t.stdout, all, len(o.Models))
}

// benchmark is what the flags ask for.
func (b *benchFlags) benchmark(t *tool, models []string) (mcompress.Benchmark, error) {
	self, err := thisProgram(mcompress.MeasureCommand)
	backend := b.backend.Value
	if backend == bothBackends {
		backend = ""
	}
	return mcompress.Benchmark{
		Models: models, Backend: backend, Library: b.library, Batches: b.batches, Dims: b.dims, Seed: b.seed,
		Warmup: b.Warmup, Runs: b.Runs, Time: b.Time, Decode: b.Decode, Prompt: b.Prompt,
		Budget: int64(b.budget), Halve: b.onOOM.Value == "halve",
		Limits: t.requestLimits(), WeightCache: b.cache, Program: self,
		Warning: t.warnOfBench,
	}, err
}

// warnOfBench prints what may be slower, or is left out.
func (t *tool) warnOfBench(err error) {
	if !t.quiet {
		printError(t.stderr, fmt.Errorf("bench: warning: %w", err))
	}
}

// thisProgram is this program with one of the commands that run jobs in a process of their own.
func thisProgram(command string) ([]string, error) {
	self, err := os.Executable()
	return []string{self, command}, err
}

// printProfiles prints the time of each operator and node of the models.
func (b *benchFlags) printProfiles(ctx context.Context, t *tool, models []string) error {
	var all []*latency.Profile
	for _, batch := range b.batches {
		for _, model := range models {
			j := b.Job
			j.Model, j.Backend, j.Batch = model, latency.Embedded, batch
			p, err := j.Profile(ctx, t.warnOfBench)
			if err != nil {
				return withModel(model, err)
			}
			all = append(all, p)
		}
	}
	if b.trace != "" {
		if err := writeFrom(models[0], b.trace, all[0].Trace); err != nil {
			return err
		}
	}
	if t.json {
		return t.encode(all)
	}
	return mcli.Profiles(t.stdout, all)
}
