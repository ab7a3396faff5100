package main

import (
	"context"
	"fmt"
	"strings"

	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/benchmark"
)

// measureTraining measures steps of finetune on random samples, for every model and batch size in a process of its own.
func (b *benchFlags) measureTraining(ctx context.Context, t *tool, models []string) error {
	var all []*benchmark.TrainingStep
	for _, model := range models {
		var steps []*benchmark.TrainingStep
		for _, batch := range b.batches {
			j := &trainingJob{Model: model, Workers: t.workers, Limits: t.limits(), Steps: max(b.Runs, 1) + b.Warmup}
			j.Options = []pass.Option{{Name: "batch", Value: fmt.Sprint(batch)}, {Name: "validate", Value: "0"}}
			m, err := j.try(ctx, nil)
			if err != nil {
				return withModel(model, err)
			}
			steps = append(steps, &benchmark.TrainingStep{
				Model: mcli.Shown(model), Batch: batch, Steps: m.Steps, Seconds: m.Seconds, PerSec: float64(batch) / m.Seconds, Peak: m.Resident,
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

// withModel prefixes an error with the model's path unless it starts with it already.
func withModel(path string, err error) error {
	if strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
