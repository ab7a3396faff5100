package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// engineMemory compares what both hold, and runs a model larger than the memory that it is given.
func (b *bench) engineMemory(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "## Memory of a run, %s threads\n\n", engineThreads)
	t.WriteString("Growth of a process at its peak, in MiB, which includes ONNX Runtime's library. Bytes of the weights and of the arena,\n")
	t.WriteString("as planned and as measured in a run.\n\n")
	t.WriteString("| model | engine | ORT | engine ÷ ORT | weights | arena planned | arena measured |\n|---|---:|---:|---:|---:|---:|---:|\n")
	err := b.eachLoad(ctx, func(l load, path string) error {
		row, err := b.memoryRow(ctx, l, path)
		t.WriteString(row)
		return err
	})
	if err != nil || b.quick {
		return t.String(), err
	}
	const limit = "1GiB"
	in, err := b.file(ctx, llm)
	if err != nil {
		return "", err
	}
	m, err := b.timed(ctx, in, latency.Embedded, load{batch: 1}, "--memory-limit", limit, "--runs", "2",
		"--time", "0s", "--warmup", "1")
	if err != nil {
		return "", fmt.Errorf("%s: %w", llm.name, err)
	}
	fmt.Fprintf(&t, "\n%s, under `--memory-limit %s`: peak resident memory %.2f GiB, %.1f s per run, %.1f s to load.\n",
		llm.name, limit, float64(m.Peak)/(1<<30), m.Median, m.Load)
	return t.String(), nil
}

func (b *bench) memoryRow(ctx context.Context, l load, path string) (string, error) {
	grown := map[string]float64{}
	var arena, weights int64
	for _, backend := range []string{latency.Embedded, latency.ORT} {
		m, err := b.timed(ctx, path, backend, l, "--runs", "3", "--time", "0s")
		if err != nil {
			return "", err
		}
		grown[backend] = float64(m.Peak-m.Baseline) / (1 << 20)
		if backend == latency.Embedded {
			arena, weights = m.Arena, m.Weights
		}
	}
	planned, measured, err := b.arenas(ctx, path, l)
	if err != nil {
		return "", err
	}
	if planned != arena {
		return "", fmt.Errorf("bench plans an arena of %d bytes, memory one of %d", arena, planned)
	}
	e, o := grown[latency.Embedded], grown[latency.ORT]
	return fmt.Sprintf("| %s | %.1f | %.1f | %.2f | %s | %s | %s |\n", l.name, e, o, e/o,
		humanize.Comma(weights), humanize.Comma(planned), humanize.Comma(measured)), nil
}

// arenas are the bytes that the plan lays out, and those that a run took.
func (b *bench) arenas(ctx context.Context, path string, l load) (planned, measured int64, err error) {
	args := []string{"--json", "--memory-limit", "4GiB", "--workers", engineThreads, "memory", path,
		"--measure", "--batch", strconv.Itoa(l.batch)}
	for _, d := range l.dims {
		args = append(args, "--dim", d)
	}
	out, err := exec.CommandContext(ctx, b.tool, args...).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("memory: %w", err)
	}
	var plan memoryplan.Plan
	if err := json.Unmarshal(out, &plan); err != nil {
		return 0, 0, err
	}
	return plan.Runs[len(plan.Runs)-1].Arena, plan.Measured.Arena, nil
}
