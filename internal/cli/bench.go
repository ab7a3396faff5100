package cli

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/report/benchmark"
)

// Bench writes measurements as a table. Two models have a row of ratios for each backend and
// batch.
func Bench(w io.Writer, ms []*benchmark.Measure, models int) error {
	if len(ms) > 0 && ms[0].Decode > 0 {
		return benchDecoding(w, ms, models)
	}
	t := &textTable{align: "llrrrrrrrrr"}
	t.add("model", "backend", "batch", "load", "min latency", "median", "p90", "samples/s", "peak bytes", "weight bytes", "arena bytes")
	for i, m := range ms {
		t.add(filepath.Base(m.Model), m.Backend, batchOf(m), seconds(m.Load), seconds(m.Min), seconds(m.Median), seconds(m.P90),
			rate(m.PerSec), known(m.Peak), known(m.Weights), known(m.Arena))
		if models == 2 && i%2 == 1 {
			a, b := ms[i-1], m
			t.add("ratio", "", "", times(a.Load, b.Load), times(a.Min, b.Min), times(a.Median, b.Median), times(a.P90, b.P90),
				times(b.PerSec, a.PerSec), times(float64(a.Peak), float64(b.Peak)), times(float64(a.Weights), float64(b.Weights)), times(float64(a.Arena), float64(b.Arena)))
		}
	}
	if err := t.write(w); err != nil {
		return err
	}
	if slices.ContainsFunc(ms, func(m *benchmark.Measure) bool { return m.PlainGo }) {
		fmt.Fprintln(w, "the embedded engine has no vector kernels for this CPU and runs plain Go: use --backend ort for the latency that the model can have")
	}
	for _, m := range ms {
		if m.Knee {
			fmt.Fprintf(w, "knee of %s, %s: batch %d, the smallest with at least 95 %% of the most samples/s\n", filepath.Base(m.Model), m.Backend, m.Batch)
		}
	}
	return nil
}

// benchDecoding writes measurements of decoding as a table.
func benchDecoding(w io.Writer, ms []*benchmark.Measure, models int) error {
	t := &textTable{align: "llrrrrrrr"}
	t.add("model", "backend", "batch", "load", "prompt tokens/s", "decode tokens/s", "peak bytes", "weight bytes", "cache bytes")
	for i, m := range ms {
		t.add(filepath.Base(m.Model), m.Backend, fmt.Sprint(m.Batch), seconds(m.Load), rate(m.Prompt), rate(m.Decode), known(m.Peak), known(m.Weights), known(m.Cache))
		if models == 2 && i%2 == 1 {
			a, b := ms[i-1], m
			t.add("ratio", "", "", times(a.Load, b.Load), times(b.Prompt, a.Prompt), times(b.Decode, a.Decode),
				times(float64(a.Peak), float64(b.Peak)), times(float64(a.Weights), float64(b.Weights)), times(float64(a.Cache), float64(b.Cache)))
		}
	}
	return t.write(w)
}

// BenchTraining writes measurements of training steps as a table, with the knees and what a batch size means for the learning rate.
func BenchTraining(w io.Writer, steps []*benchmark.TrainingStep) error {
	t := &textTable{align: "lrrrr"}
	t.add("model", "batch", "step", "samples/s", "peak bytes")
	for _, s := range steps {
		t.add(filepath.Base(s.Model), fmt.Sprint(s.Batch), seconds(s.Seconds), rate(s.PerSec), known(s.Peak))
	}
	if err := t.write(w); err != nil {
		return err
	}
	several := false
	for _, s := range steps {
		if s.Knee {
			several = true
			fmt.Fprintf(w, "knee of %s: batch %d, the smallest with at least 95 %% of the most samples/s\n", filepath.Base(s.Model), s.Batch)
		}
	}
	if !several {
		return nil
	}
	_, err := fmt.Fprintln(w, "learning rate: for k times the batch size multiply it by k, with warmup (SGD; Goyal et al. 2017, arXiv:1706.02677), or by √k (Krizhevsky 2014, arXiv:1404.5997)")
	return err
}

func batchOf(m *benchmark.Measure) string {
	if len(m.Halved) == 0 {
		return fmt.Sprint(m.Batch)
	}
	return fmt.Sprintf("%d (halved from %d)", m.Batch, m.Halved[0])
}

// seconds formats a time with three digits and its unit.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// rate has three digits, or all before the decimal point.
func rate(x float64) string {
	if x >= 100 {
		return humanize.Comma(int64(math.Round(x)))
	}
	return fmt.Sprintf("%.3g", x)
}

func known(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return humanize.Comma(bytes)
}

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f×", a/b)
}
