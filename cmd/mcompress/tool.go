package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/bounded"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/memory"
)

// A tool is one run of the program: its output streams and global flags.
type tool struct {
	stdout, stderr *mcli.Terminal

	json     bool
	quiet    bool
	workers  int
	memory   mcli.Size
	limited  bool // memory was given
	maxSteps int64
	grace    time.Duration
	ended    chan struct{} // closed when the run has ended
	version  bool
	color    mcli.Enum
	policy   string

	planned  *mcompress.Plan // takes the request of the command instead of running it; nil for none
	progress *progressBars
}

// defaultGrace is shorter than the 30 seconds that schedulers grant by default.
const defaultGrace = 25 * time.Second

func newTool(stdout, stderr io.Writer) *tool {
	t := &tool{
		stdout: mcli.NewTerminal(stdout), stderr: mcli.NewTerminal(stderr),
		memory: 256 << 20, ended: make(chan struct{}),
		color: mcli.Enum{Value: "auto", Words: []string{"auto", "always", "never"}},
	}
	t.progress = &progressBars{tool: t}
	return t
}

func (t *tool) globalFlags() []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		fs.BoolVar(&t.json, "json", false, "print results as JSON")
		fs.BoolVar(&t.quiet, "quiet", false, "no progress bar, no hints")
		fs.IntVar(&t.workers, "workers", 0, "`number` of worker threads (default: one per CPU)")
		fs.Var(&t.memory, "memory-limit", "memory limit, a `size` such as 1GiB (default: 256 MiB for weights, half of the available memory for runs)")
		fs.Int64Var(&t.maxSteps, "max-steps", memory.DefaultSteps, "maximum `number` of steps of one run of a model, which bounds loops")
		fs.DurationVar(&t.grace, "grace", defaultGrace, "`duration` after SIGTERM or SIGINT at which the process ends with exit code 1, if it has not ended before")
		fs.Var(&t.color, "color", "`mode` of colored output: auto, always, never")
		fs.StringVar(&t.policy, "policy", "", "`file` of gates that are not given, or none (default: mcompress.yaml in the working folder or above it in the repository)")
		fs.BoolVar(&t.version, "version", false, "print the version, as the command version does")
	})
}

// isGiven reports whether a global flag was given.
func isGiven(c *cli.Context, name string) bool {
	return slices.ContainsFunc(c.Lineage(), func(c *cli.Context) bool { return c.IsSet(name) })
}

// given are the global flags, besides those of the output, of another process of this run that has a number of worker threads.
func (t *tool) given(workers int) []string {
	flags := []string{"--workers", strconv.Itoa(workers)}
	if t.limited {
		flags = append(flags, "--memory-limit", strconv.FormatInt(int64(t.memory), 10))
	}
	if t.maxSteps != memory.DefaultSteps {
		flags = append(flags, "--max-steps", strconv.FormatInt(t.maxSteps, 10))
	}
	if t.grace != defaultGrace {
		flags = append(flags, "--grace", t.grace.String())
	}
	if t.policy != "" {
		flags = append(flags, "--policy", t.policy)
	}
	return flags
}

// begin applies the global flags.
func (t *tool) begin(c *cli.Context) error {
	if t.workers < 0 {
		return usagef("--workers %d: must be a positive number", t.workers)
	}
	if t.grace <= 0 {
		return usagef("--grace %v: must be positive", t.grace)
	}
	go t.endAfterGrace(c.Context)
	if t.maxSteps < 1 {
		return usagef("--max-steps %d: must be a positive number", t.maxSteps)
	}
	if t.workers == 0 {
		t.workers = runtime.GOMAXPROCS(0)
	}
	t.limited = isGiven(c, "memory-limit")
	limitMemory(int64(t.memory))
	bounded.SetMemory(int64(t.memory))
	if t.version {
		return errors.Join(t.printVersion(), exit{exitDone})
	}
	return nil
}

// endAfterGrace ends the process if the run does not end within the grace period after a signal: a read of a pipe or of a file system that does not
// answer cannot be interrupted.
func (t *tool) endAfterGrace(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-t.ended:
		return
	}
	select {
	case <-time.After(t.grace):
		printError(t.stderr, fmt.Errorf("interrupted; ended after the grace period of %v", t.grace))
		os.Exit(exitIO)
	case <-t.ended:
	}
}

// style returns the style of stdout, with colours if enabled.
func (t *tool) style() mcli.Style {
	on := t.color.Value == "always"
	if t.color.Value == "auto" {
		on = isTerminal(t.stdout) && os.Getenv("NO_COLOR") == ""
	}
	return mcli.Style{On: on}
}

// encode prints results as JSON.
func (t *tool) encode(facts any) error {
	e := json.NewEncoder(t.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(facts)
}

func isTerminal(w *mcli.Terminal) bool {
	f, ok := w.Unwrap().(*os.File)
	return ok && cwriter.IsTerminal(int(f.Fd()))
}
