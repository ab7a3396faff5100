package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/latency"
)

// measureCommand is what bench calls this program with, the job as JSON on stdin: peak memory
// is that of a process.
const measureCommand = "__measure"

// timing is what bench measures.
type timing struct {
	latency.Job
	making
	*running
	batches mcli.Counts
	budget  mcli.Size
	onOOM   mcli.Enum
	profile bool
	trace   string
}

func (t *tool) benchCommand() *cli.Command {
	b := &timing{
		Job:     latency.Job{Runs: 10, Warmup: 3, Time: time.Second},
		running: newRunning("both"),
		onOOM:   mcli.Enum{Value: "fail", Words: []string{"fail", "halve"}},
		batches: mcli.Counts{1},
	}
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure latency, throughput and peak memory of one model or two",
		ArgsUsage: "A [B]",
		Description: `Each model runs on random inputs, on each backend and batch size in a separate process, whose peak
memory is measured. With two models, a ratio above 1 means that B is better. Times are of one run;
bytes are resident memory, including that of the process before the model is loaded.`,
		Flags: group("flags", b.flags),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			if err := b.check(c, models); err != nil {
				return err
			}
			b.Workers, b.Budget, b.Dims, b.Seed = t.workers, int64(b.budget), b.dims, b.seed
			if t.limited {
				b.Memory = int64(t.memory)
			}
			if b.profile {
				return t.profiled(c.Context, models, b)
			}
			return t.bench(c.Context, models, b)
		},
	}
}

func (b *timing) flags(fs *flag.FlagSet) {
	b.running.declare(fs)
	b.making.declare(fs)
	fs.Var(&b.batches, "batch", "comma-separated batch `sizes`")
	fs.IntVar(&b.Runs, "runs", b.Runs, "minimum `number` of timed runs")
	fs.DurationVar(&b.Time, "time", b.Time, "minimum total `time` of the timed runs")
	fs.IntVar(&b.Warmup, "warmup", b.Warmup, "`number` of warm-up runs")
	fs.Var(&b.budget, "budget", "memory budget of a run, a `size`")
	fs.Var(&b.onOOM, "on-oom", "`action` for a run beyond the budget: fail, halve (the batch)")
	fs.BoolVar(&b.profile, "profile", false, "print the time of each operator and node")
	outPathVar(fs, &b.trace, "trace", "`file` for the profile as a trace for Chrome's and Perfetto's viewers")
}

// check refuses what does not go together.
func (b *timing) check(c *cli.Context, models []string) error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"runs", int64(b.Runs)}, {"warmup", int64(b.Warmup)}, {"time", int64(b.Time)}} {
		if n.value < 0 {
			return usagef("--%s %s: it is not negative", n.name, c.String(n.name))
		}
	}
	if err := b.running.check(); err != nil {
		return err
	}
	switch {
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

// bench measures every model on every backend at every batch.
func (t *tool) bench(ctx context.Context, models []string, b *timing) error {
	backends, err := t.backends(b)
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
					return ofModel(model, err)
				}
				all = append(all, m)
			}
		}
	}
	if t.json {
		return t.encode(all)
	}
	return mcli.Bench(t.stdout, all, len(models))
}

// ofModel names the model, unless the error does that itself.
func ofModel(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// backends are those that were asked for. Where both were and nobody said where it is, the lack
// of ONNX Runtime is a warning.
func (t *tool) backends(b *timing) ([]string, error) {
	if b.embedded() {
		return []string{latency.Embedded}, nil
	}
	path, err := ort.Find(b.library)
	if err != nil {
		if b.backend.Value == latency.ORT || b.library != "" {
			return nil, &libraryError{err}
		}
		if !t.quiet {
			say(t.stderr, fmt.Errorf("bench: without ONNX Runtime: %w", err))
		}
		return []string{latency.Embedded}, nil
	}
	if b.Library = path; b.backend.Value == latency.ORT {
		return []string{latency.ORT}, nil
	}
	return []string{latency.Embedded, latency.ORT}, nil
}

// measure runs j in a process of its own, with half the batch as often as it does not fit.
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
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	facts, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	c := exec.CommandContext(ctx, self, measureCommand)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(facts), &out, &complaint
	if err := c.Run(); err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" {
			_, last, _ := cutLast(text, "\n")
			return nil, &childError{strings.TrimPrefix(last, "mcompress: "), max(exitIO, c.ProcessState.ExitCode())} // -1 after a signal
		}
		return nil, fmt.Errorf("the measuring process: %w", err)
	}
	m := &latency.Measure{}
	return m, json.Unmarshal(out.Bytes(), m)
}

// cutLast cuts text at the last sep; all of it is the second part where there is none.
func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return "", text, false
}

// measureHere is the measuring process.
func measureHere(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var j latency.Job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return err
	}
	if j.Memory > 0 {
		limitMemory(j.Memory)
	}
	m, err := j.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(m)
}

// profiled says where the time of each model goes.
func (t *tool) profiled(ctx context.Context, models []string, b *timing) error {
	var all []*latency.Profile
	for _, batch := range b.batches {
		for _, model := range models {
			j := b.Job
			j.Model, j.Backend, j.Batch = model, latency.Embedded, batch
			p, err := j.Profile(ctx)
			if err != nil {
				return ofModel(model, err)
			}
			all = append(all, p)
		}
	}
	if b.trace != "" {
		if err := job.WriteFile(b.trace, func(f *os.File) error { return all[0].Trace(f) }); err != nil {
			return err
		}
	}
	if t.json {
		return t.encode(all)
	}
	return mcli.Profiles(t.stdout, all)
}

// encode writes facts as JSON.
func (t *tool) encode(facts any) error {
	e := json.NewEncoder(t.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(facts)
}
