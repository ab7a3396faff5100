package main

import (
	"bytes"
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

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/engine/ort"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/stopwatch"
)

// measureCommand is what bench calls this program with, the job as JSON on stdin: peak memory
// is that of a process.
const measureCommand = "__measure"

// timing is what bench measures.
type timing struct {
	stopwatch.Job
	backend mcli.Enum
	library string
	batches mcli.Counts
	dims    mcli.Dims
	budget  mcli.Size
	onOOM   mcli.Enum
	profile bool
	trace   string
}

func (t *tool) benchCommand() *cli.Command {
	b := &timing{
		Job:     stopwatch.Job{Runs: 10, Warmup: 3, Time: time.Second},
		backend: mcli.Enum{Value: stopwatch.Embedded, Words: []string{stopwatch.Embedded, stopwatch.ORT, "both"}},
		onOOM:   mcli.Enum{Value: "fail", Words: []string{"fail", "halve"}},
		batches: mcli.Counts{1},
	}
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure latency, throughput and memory of a model, or of two side by side",
		ArgsUsage: "A [B]",
		Description: `Each model runs on made-up inputs, on each backend and batch size in a process of its own, so that
peak memory is that model's alone. Ratios are A's figure over B's: above 1, B is the better one.`,
		Flags: group("flags", b.flags),
		Action: func(c *cli.Context) error {
			models, err := arguments(c, 1, 2)
			if err != nil {
				return err
			}
			b.Workers, b.Budget, b.Dims, b.Library = t.workers, int64(b.budget), b.dims, b.library
			if b.profile {
				return t.profiled(c.Context, models, b)
			}
			return t.bench(c.Context, models, b)
		},
	}
}

func (b *timing) flags(fs *flag.FlagSet) {
	fs.Var(&b.backend, "backend", "`backend` that runs the models: embedded, ort, both")
	fs.StringVar(&b.library, "ort-lib", "", "`path` of ONNX Runtime's library, or of its folder (default: "+ort.Variable+")")
	fs.Var(&b.batches, "batch", "`sizes` of batches, with commas")
	fs.Var(&b.dims, "dim", "`name=size` of another open axis; may be repeated")
	fs.Uint64Var(&b.Seed, "seed", 0, "`seed` of the inputs")
	fs.IntVar(&b.Runs, "runs", b.Runs, "least `number` of runs that are timed")
	fs.DurationVar(&b.Time, "time", b.Time, "least `time` that is spent on them")
	fs.IntVar(&b.Warmup, "warmup", b.Warmup, "`number` of runs before them")
	fs.Var(&b.budget, "budget", "`size` of memory that the run must fit")
	fs.Var(&b.onOOM, "on-oom", "`what` to do where it does not: fail, halve (the batch)")
	fs.BoolVar(&b.profile, "profile", false, "say where the time goes, by operator and by node")
	fs.StringVar(&b.trace, "trace", "", "`file` for the profile as a trace, which Chrome's and Perfetto's viewers open")
}

// bench measures every model on every backend at every batch.
func (t *tool) bench(ctx context.Context, models []string, b *timing) error {
	if b.trace != "" {
		return usagef("--trace goes with --profile")
	}
	backends, err := t.backends(b)
	if err != nil {
		return err
	}
	var all []*stopwatch.Measure
	for _, batch := range b.batches {
		for _, backend := range backends {
			for _, model := range models {
				j := b.Job
				j.Model, j.Backend, j.Batch = model, backend, batch
				if t.limited {
					j.Memory = int64(t.memory)
				}
				m, err := measure(ctx, j, b.onOOM.Value == "halve")
				if err != nil {
					return fmt.Errorf("%s: %w", model, err)
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

// backends are those that were asked for. Where both were, the lack of ONNX Runtime is a warning.
func (t *tool) backends(b *timing) ([]string, error) {
	if b.backend.Value == stopwatch.Embedded {
		return []string{stopwatch.Embedded}, nil
	}
	path, err := ort.Find(b.library)
	if err != nil {
		if b.backend.Value == stopwatch.ORT {
			return nil, err
		}
		say(t.stderr, fmt.Errorf("bench: without ONNX Runtime: %w", err))
		return []string{stopwatch.Embedded}, nil
	}
	if b.Library = path; b.backend.Value == stopwatch.ORT {
		return []string{stopwatch.ORT}, nil
	}
	return []string{stopwatch.Embedded, stopwatch.ORT}, nil
}

// measure runs j in a process of its own, with half the batch as often as it does not fit.
func measure(ctx context.Context, j stopwatch.Job, halve bool) (*stopwatch.Measure, error) {
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
			return nil, fmt.Errorf("a batch of %d takes %s, more than the budget of %s%s", j.Batch, mcli.Amount(m.Needs), mcli.Amount(j.Budget), advice(j, halve))
		}
		halved = append(halved, j.Batch)
		j.Batch /= 2
	}
}

func advice(j stopwatch.Job, halve bool) string {
	if halve || j.Batch == 1 {
		return ""
	}
	return "; --on-oom halve finds one that fits"
}

func measureOnce(ctx context.Context, j stopwatch.Job) (*stopwatch.Measure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	c := exec.CommandContext(ctx, self, measureCommand)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(job), &out, &complaint
	if err := c.Run(); err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" {
			_, last, _ := cutLast(text, "\n")
			return nil, errors.New(strings.TrimPrefix(last, "mcompress: "))
		}
		return nil, fmt.Errorf("the measuring process: %w", err)
	}
	m := &stopwatch.Measure{}
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
	var j stopwatch.Job
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
	if b.trace != "" && len(models) > 1 {
		return usagef("--trace is of one model")
	}
	for _, model := range models {
		j := b.Job
		j.Model, j.Backend, j.Batch = model, stopwatch.Embedded, b.batches[0]
		p, err := j.Profile(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", model, err)
		}
		if b.trace != "" {
			if err := writeTrace(b.trace, p); err != nil {
				return err
			}
		}
		if t.json {
			err = t.encode(p)
		} else {
			err = mcli.Profile(t.stdout, model, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeTrace(path string, p *stopwatch.Profile) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(p.Trace(f), f.Close())
}

// encode writes facts as JSON.
func (t *tool) encode(facts any) error {
	e := json.NewEncoder(t.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(facts)
}
