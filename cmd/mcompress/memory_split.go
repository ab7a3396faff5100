package main

import (
	"context"
	"flag"
	"fmt"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/onnx"
)

func (s *memoryFlags) splitFlags(fs *flag.FlagSet) {
	fs.IntVar(&s.split, "split", 0, "`number` of pipeline stages: see mcompress split")
	fs.Var(&s.by, "by", "`cost` that is balanced between stages: weights, activations, flops")
}

// planSplit plans pipeline stages, measures them with --measure, and prints them.
func (s *memoryFlags) planSplit(ctx context.Context, t *tool, f *onnx.File) error {
	o := partition.Options{Stages: s.split, By: s.by.Value, Dims: s.dims}
	if n := len(s.batches); n > 0 {
		o.Batch = s.batches[n-1]
	}
	plan, err := partition.New(ctx, f.Model, o)
	if err == nil && s.measure {
		err = plan.Measure(ctx, f.Path, o, t.workers, t.limits())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if t.json {
		return t.encode(plan)
	}
	return mcli.Partition(t.stdout, t.style(), f.Path, plan, s.top)
}
