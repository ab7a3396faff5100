package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/footprint"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/onnx"
)

// seeing is what of a model's memory is looked at, and how it is shown.
type seeing struct {
	batches mcli.Counts
	dims    mcli.Dims
	budget  mcli.Size
	layout  bool
	measure bool
	plain   bool
	top     int
	html    string
}

func (t *tool) memoryCommand() *cli.Command {
	s := &seeing{top: 10}
	return &cli.Command{
		Name:      "memory",
		Usage:     "say what memory a model needs while it runs: weights, activations over time, by batch size",
		ArgsUsage: "MODEL",
		Description: `The run is planned and not made, and no weights are read: a model larger than memory is no matter.
In all is what the engine of this program takes: weights, inputs, outputs, and an arena for all that
lies between. Scratch in it depends on --workers. With --budget, exit code 3 says that nothing fits.`,
		Flags: group("flags", s.flags),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if s.top < 0 {
				return usagef("--top %d: it takes a positive number", s.top)
			}
			f, err := onnx.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			return t.see(c.Context, f, s)
		},
	}
}

func (s *seeing) flags(fs *flag.FlagSet) {
	fs.Var(&s.batches, "batch", "`sizes` of open batch axes, with commas (default: 1); details are of the last")
	dimFlag(fs, &s.dims)
	fs.Var(&s.budget, "budget", "`size` that the largest batch is looked for")
	fs.BoolVar(&s.layout, "layout", false, "count what channels last (NHWC) would change: transposes, and what convolutions copy")
	fs.BoolVar(&s.measure, "measure", false, "run the model once on made-up inputs, and compare with the plan")
	fs.BoolVar(&s.plain, "plain", false, "no fusions: each node runs as it stands")
	fs.IntVar(&s.top, "top", s.top, "`number` of values at the peak to list")
	fs.StringVar(&s.html, "html", "", "`path` of a page with plots of memory over time")
}

// see plans, and prints what came of it.
func (t *tool) see(ctx context.Context, f *onnx.File, s *seeing) error {
	facts, err := footprint.Model(ctx, f, footprint.Options{
		Workers: t.workers, Batches: s.batches, Dims: s.dims, Budget: int64(s.budget),
		Layout: s.layout, Measure: s.measure, Plain: s.plain,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if facts.Unplanned != "" && (s.html != "" || s.budget > 0 || s.layout || s.measure) {
		return fmt.Errorf("%s: %s", f.Path, facts.Unplanned)
	}
	if err := t.facts(f.Path, facts, s); err != nil {
		return err
	}
	if facts.Unplanned != "" {
		t.warn("only weights are known: %s", facts.Unplanned)
	}
	if facts.Fixed && len(s.batches) > 0 {
		t.warn("the model declares its batch: --batch changes nothing")
	}
	if b := facts.Budget; b != nil && b.Batch == 0 {
		return exit{exitGate}
	}
	return nil
}

// warn says what goes with facts that are right, but may not be those that were asked for.
func (t *tool) warn(format string, args ...any) {
	if !t.quiet {
		fmt.Fprintf(t.stderr, "mcompress: memory: "+format+"\n", args...)
	}
}

func (t *tool) facts(path string, facts *footprint.Facts, s *seeing) error {
	if s.html != "" {
		page := facts.Page(filepath.Base(path))
		if err := job.WriteFile(s.html, func(w *os.File) error { return page.HTML(w) }); err != nil {
			return err
		}
	}
	if !t.json {
		return mcli.Footprint(t.stdout, t.style(), path, facts, s.top)
	}
	e := json.NewEncoder(t.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(facts)
}
