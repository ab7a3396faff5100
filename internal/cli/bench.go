package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/stopwatch"
)

// Bench writes measurements as a table; of two models those of one backend and batch stand in
// a row of their own ratio.
func Bench(w io.Writer, ms []*stopwatch.Measure, models int) error {
	t := &Table{Right: "llrrrrrrrrr"}
	t.Add("model", "backend", "batch", "load", "min", "median", "p90", "per second", "peak", "weights", "arena")
	for i, m := range ms {
		t.Add(filepath.Base(m.Model), m.Backend, batchOf(m), seconds(m.Load), seconds(m.Min), seconds(m.Median), seconds(m.P90),
			fmt.Sprintf("%.4g", m.PerSec), Amount(m.Peak), known(m.Weights), known(m.Arena))
		if models == 2 && i%2 == 1 {
			a, b := ms[i-1], m
			t.Add("ratio", "", "", times(a.Load, b.Load), times(a.Min, b.Min), times(a.Median, b.Median), times(a.P90, b.P90),
				times(b.PerSec, a.PerSec), times(float64(a.Peak), float64(b.Peak)), times(float64(a.Weights), float64(b.Weights)), times(float64(a.Arena), float64(b.Arena)))
		}
	}
	return t.Write(w)
}

func batchOf(m *stopwatch.Measure) string {
	if len(m.Halved) == 0 {
		return fmt.Sprint(m.Batch)
	}
	return fmt.Sprintf("%d (halved from %d)", m.Batch, m.Halved[0])
}

// seconds shows a time in the unit that leaves it three digits.
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

// Amount shows bytes in a unit that leaves two digits or three.
func Amount(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }

func known(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return Amount(bytes)
}

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f×", a/b)
}

// shownNodes is how many nodes a profile shows as text.
const shownNodes = 20

// Profile writes where the time of a model went.
func Profile(w io.Writer, model string, p *stopwatch.Profile) error {
	fmt.Fprintf(w, "%s: %s a run, mean of %d\n\n", filepath.Base(model), seconds(p.Seconds), p.Runs)
	if err := profileTable("operator", p.Operators).Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := profileTable("node", p.Nodes[:min(len(p.Nodes), shownNodes)]).Write(w); err != nil {
		return err
	}
	if more := len(p.Nodes) - shownNodes; more > 0 {
		fmt.Fprintf(w, "and %d nodes more; --json has them all\n", more)
	}
	return nil
}

func profileTable(what string, rows []stopwatch.ProfileRow) *Table {
	t := &Table{Right: "lrrrrr"}
	t.Add(what, "calls", "time", "share", "allocated", "freed")
	for _, r := range rows {
		t.Add(r.Name, fmt.Sprintf("%.4g", r.Calls), seconds(r.Seconds), fmt.Sprintf("%.1f %%", 100*r.Share), Amount(r.Alloc), Amount(r.Freed))
	}
	return t
}
