package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/latency"
)

// measureCommand is the command that runs one measurement of bench in a process of its own, with the job as JSON on stdin:
// peak memory is measured per process.
const measureCommand = "__measure"

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
		backendFlags: newBackendFlags("both"),
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
			return b.measure(c.Context, t, models)
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

// check rejects invalid combinations of flags.
func (b *benchFlags) check(c *cli.Context, models []string) error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"runs", int64(b.Runs)}, {"warmup", int64(b.Warmup)}, {"time", int64(b.Time)}} {
		if n.value < 0 {
			return usagef("--%s %s: must not be negative", n.name, c.String(n.name))
		}
	}
	if err := b.backendFlags.check(); err != nil {
		return err
	}
	if b.training {
		for _, name := range []string{"profile", "budget", "backend", "on-oom", "time", "dim", "seed", "cache"} {
			if c.IsSet(name) {
				return usagef("--training and --%s exclude each other", name)
			}
		}
	}
	switch {
	case b.Decode < 0 || b.Prompt < 1:
		return usagef("--decode and --prompt must be positive")
	case b.Decode == 0 && c.IsSet("prompt"):
		return usagef("--prompt requires --decode")
	case b.Decode > 0 && (b.training || b.profile || b.budget > 0):
		return usagef("--decode excludes --training, --profile and --budget")
	case b.onOOM.Value != "fail" && b.budget == 0:
		return usagef("--on-oom requires --budget")
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
func (b *benchFlags) measure(ctx context.Context, t *tool, models []string) error {
	backends, err := b.backends(t)
	if err != nil {
		return err
	}
	var all []*latency.Measure
	for _, batch := range b.batches {
		for _, backend := range backends {
			for _, model := range models {
				j := b.Job
				j.Model, j.Backend, j.Batch = model, backend, batch
				m, err := measure(ctx, j, b.onOOM.Value == "halve")
				if err != nil {
					return withModel(model, err)
				}
				for _, w := range m.Warnings {
					t.warnOfCache(errors.New(w))
				}
				all = append(all, m)
			}
		}
	}
	latency.MarkKnees(all)
	if t.json {
		return t.encode(all)
	}
	return mcli.Bench(t.stdout, all, len(models))
}

// withModel prefixes an error with the model's path unless it starts with it already.
func withModel(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// backends returns the requested backends. With --backend both and without --ort-lib, a missing ONNX Runtime is a warning.
func (b *benchFlags) backends(t *tool) ([]string, error) {
	if b.embedded() {
		return []string{latency.Embedded}, nil
	}
	path, err := ort.Find(b.library)
	if err != nil {
		if b.backend.Value == latency.ORT || b.library != "" {
			return nil, &mcompress.LibraryError{Err: err}
		}
		if !t.quiet {
			printError(t.stderr, fmt.Errorf("bench: without ONNX Runtime: %w", err))
		}
		return []string{latency.Embedded}, nil
	}
	if b.Library = path; b.backend.Value == latency.ORT {
		return []string{latency.ORT}, nil
	}
	return []string{latency.Embedded, latency.ORT}, nil
}

// measure runs j in a process of its own, halving the batch until it fits in the budget.
func measure(ctx context.Context, j latency.Job, halve bool) (*latency.Measure, error) {
	var halved []int64
	for {
		m, err := measureOnce(ctx, j)
		if err != nil {
			return nil, err
		}
		if !m.Over() {
			m.Halved = halved
			return m, nil
		}
		if !halve || j.Batch == 1 {
			return nil, &gateError{fmt.Errorf("a batch of %d takes %s bytes, the budget is %s%s", j.Batch, humanize.Comma(m.Needs), humanize.Comma(j.Budget), advice(j, halve))}
		}
		halved = append(halved, j.Batch)
		j.Batch /= 2
	}
}

func advice(j latency.Job, halve bool) string {
	if halve || j.Batch == 1 {
		return ""
	}
	return "; --on-oom halve finds one that fits"
}

func measureOnce(ctx context.Context, j latency.Job) (*latency.Measure, error) {
	m := &latency.Measure{}
	return m, runChild(ctx, measureCommand, j, m)
}

// runChild runs a command of this program in a process of its own, with the job as JSON on stdin, and decodes the result.
func runChild(ctx context.Context, command string, job, result any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	facts, err := json.Marshal(job)
	if err != nil {
		return err
	}
	var out, complaint bytes.Buffer
	c := exec.CommandContext(ctx, self, command)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(facts), &out, &complaint
	if err := c.Run(); err != nil {
		return childFailure(strings.TrimSpace(complaint.String()), c.ProcessState.ExitCode(), err)
	}
	return json.Unmarshal(out.Bytes(), result)
}

// childFailure is the error of a measuring process by its standard error and exit code. One that died has exit code -1, or that of the Go
// runtime, and the reason is in the first line.
func childFailure(stderr string, code int, err error) error {
	_, last, _ := cutLast(stderr, "\n")
	if text, ok := strings.CutPrefix(last, "mcompress: "); ok {
		return &childError{text, max(exitIO, code)}
	}
	reason, _, _ := strings.Cut(cmp.Or(stderr, err.Error()), "\n")
	return &childError{"the measuring process ended: " + reason, exitIO}
}

// cutLast cuts text at the last sep; without one, all of it is after.
func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return "", text, false
}

// measureHere runs one measurement in this process.
func measureHere(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var j latency.Job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return err
	}
	if j.Limits.Memory > 0 {
		limitMemory(j.Limits.Memory)
	}
	m, err := j.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(m)
}

// printProfiles prints the time of each operator and node of the models.
func (b *benchFlags) printProfiles(ctx context.Context, t *tool, models []string) error {
	var all []*latency.Profile
	for _, batch := range b.batches {
		for _, model := range models {
			j := b.Job
			j.Model, j.Backend, j.Batch = model, latency.Embedded, batch
			p, err := j.Profile(ctx, t.warnOfCache)
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
