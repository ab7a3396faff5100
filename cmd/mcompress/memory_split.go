package main

import (
	"context"
	"flag"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
)

func (s *memoryFlags) splitFlags(fs *flag.FlagSet) {
	fs.IntVar(&s.split, "split", 0, "`number` of pipeline stages: see mcompress split")
	fs.Var(&s.by, "by", "`cost` that is balanced between stages: weights, activations, flops")
}

// planSplit plans pipeline stages, measures them with --measure, and prints them.
func (s *memoryFlags) planSplit(ctx context.Context, t *tool, path string) error {
	o := mcompress.SplitOptions{
		Stages: s.split, Balance: s.by.Value, Dims: s.dims, Measure: s.measure, Limits: t.requestLimits(),
	}
	if n := len(s.batches); n > 0 {
		o.Batch = s.batches[n-1]
	}
	plan, err := mcompress.PlanStages(ctx, path, o)
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(plan)
	}
	return mcli.Partition(t.stdout, t.style(), mcli.Shown(path), plan, s.top)
}
