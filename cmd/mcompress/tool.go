package main

import (
	"flag"
	"io"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8/cwriter"

	mcli "github.com/mcompress/mcompress/internal/cli"
)

// A tool is one run of the program: where it writes, and its global flags.
type tool struct {
	stdout, stderr io.Writer

	json    bool
	quiet   bool
	workers int
	memory  mcli.Size
	limited bool // memory was given
	color   mcli.Enum
}

func newTool(stdout, stderr io.Writer) *tool {
	return &tool{
		stdout: stdout, stderr: stderr,
		memory: 256 << 20,
		color:  mcli.Enum{Value: "auto", Words: []string{"auto", "always", "never"}},
	}
}

func (t *tool) globalFlags() []cli.Flag {
	return group("flags", func(fs *flag.FlagSet) {
		fs.BoolVar(&t.json, "json", false, "write facts to stdout as JSON")
		fs.BoolVar(&t.quiet, "quiet", false, "no progress, no hints")
		fs.IntVar(&t.workers, "workers", 0, "`number` of goroutines that compute (default: one for each CPU)")
		fs.Var(&t.memory, "memory-limit", "`size` that memory in use is kept below")
		fs.Var(&t.color, "color", "`when` to colour: auto, always, never")
	})
}

// begin settles what the global flags leave open.
func (t *tool) begin(c *cli.Context) error {
	if t.workers < 0 {
		return usagef("--workers %d: it takes a positive number", t.workers)
	}
	if t.workers == 0 {
		t.workers = runtime.GOMAXPROCS(0)
	}
	t.limited = c.IsSet("memory-limit")
	limitMemory(int64(t.memory))
	return nil
}

// style colours stdout where that is wanted.
func (t *tool) style() mcli.Style {
	on := t.color.Value == "always"
	if t.color.Value == "auto" {
		on = isTerminal(t.stdout) && os.Getenv("NO_COLOR") == ""
	}
	return mcli.Style{On: on}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && cwriter.IsTerminal(int(f.Fd()))
}
