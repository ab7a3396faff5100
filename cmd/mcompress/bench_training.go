package main

import (
	"context"
	"fmt"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/pass"
)

// measureTraining measures steps of finetune on random samples, for every model and batch size in a process of its own.
func (b *benchFlags) measureTraining(ctx context.Context, t *tool, models []string) error {
	var all []*latency.TrainingStep
	for _, model := range models {
		var steps []*latency.TrainingStep
		for _, batch := range b.batches {
			j := &trainingJob{Model: model, Workers: t.workers, Limits: t.limits(), Steps: max(b.Runs, 1) + b.Warmup}
			j.Options = []pass.Option{{Name: "batch", Value: fmt.Sprint(batch)}, {Name: "validate", Value: "0"}}
			m, err := j.try(ctx, nil)
			if err != nil {
				return withModel(model, err)
			}
			steps = append(steps, &latency.TrainingStep{
				Model: remote.Shown(model), Batch: batch, Steps: m.Steps, Seconds: m.Seconds, PerSec: float64(batch) / m.Seconds, Peak: m.Resident,
			})
		}
		latency.MarkKnee(steps)
		all = append(all, steps...)
	}
	if t.json {
		return t.encode(all)
	}
	return mcli.BenchTraining(t.stdout, all)
}
