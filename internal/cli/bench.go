package cli

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/latency"
)

// Bench writes measurements as a table. Two models have a row of ratios for each backend and
// batch.
func Bench(w io.Writer, ms []*latency.Measure, models int) error {
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
	return t.write(w)
}

func batchOf(m *latency.Measure) string {
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

// shownNodes is the number of nodes of a profile as text.
const shownNodes = 20

// Profiles writes the run time of models by operator and by node.
func Profiles(w io.Writer, ps []*latency.Profile) error {
	for i, p := range ps {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := profile(w, p); err != nil {
			return err
		}
	}
	return nil
}

func profile(w io.Writer, p *latency.Profile) error {
	fmt.Fprintf(w, "%s, batch %d: mean latency %s (%d runs)\n\n", filepath.Base(p.Model), p.Batch, seconds(p.Seconds), p.Runs)
	if err := profileTable("operator", p.Operators).write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := profileTable("node", p.Nodes[:min(len(p.Nodes), shownNodes)]).write(w); err != nil {
		return err
	}
	if more := len(p.Nodes) - shownNodes; more > 0 {
		fmt.Fprintf(w, "%d more, see --json\n", more)
	}
	return nil
}

func profileTable(what string, rows []latency.ProfileRow) *textTable {
	t := &textTable{align: "lrrrrr"}
	t.add(what, "calls", "time", "fraction", "bytes allocated", "bytes freed")
	for _, r := range rows {
		t.add(abridged(r.Name), fmt.Sprintf("%.4g", r.Calls), seconds(r.Seconds), fmt.Sprintf("%.1f %%", 100*r.Fraction), humanize.Comma(r.Alloc), humanize.Comma(r.Freed))
	}
	return t
}
