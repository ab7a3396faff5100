package cli

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/latency"
	"github.com/mcompress/mcompress/internal/profile"
)

// shownNodes and shownValues are the numbers of nodes, and of values at the peak, of a profile as text.
const (
	shownNodes  = 20
	shownValues = 10
)

// Profiles writes the run time of models by operator and by node, and their memory.
func Profiles(w io.Writer, ps []*latency.Profile) error {
	for i, p := range ps {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s, batch %d: mean latency %s (%d runs)\n\n", filepath.Base(p.Model), p.Batch, seconds(p.Seconds), p.Steps)
		if err := profileText(w, p.Profile, "run"); err != nil {
			return err
		}
	}
	return nil
}

// trainingProfile writes the time of training steps by phase, operator and node, and their memory; nothing for nil.
func trainingProfile(w io.Writer, p *profile.Profile) error {
	if p == nil {
		return nil
	}
	fmt.Fprintf(w, "\nprofile: mean %s a step (%d steps)\n\n", seconds(p.Seconds), p.Steps)
	phases := &textTable{align: "lrrrr"}
	phases.add("phase", "time", "fraction", "bytes allocated", "bytes freed")
	for _, r := range p.Phases {
		phases.add(r.Phase, seconds(r.Seconds), percent(r.Fraction), humanize.Comma(r.Alloc), humanize.Comma(r.Freed))
	}
	if err := phases.write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return profileText(w, p, "step")
}

// profileText writes the tables that profiles of training and inference have.
func profileText(w io.Writer, p *profile.Profile, unit string) error {
	if err := profileTable("operator", p.Operators, len(p.Phases) > 0).write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := profileTable("node", p.Nodes[:min(len(p.Nodes), shownNodes)], len(p.Phases) > 0).write(w); err != nil {
		return err
	}
	if more := len(p.Nodes) - shownNodes; more > 0 {
		fmt.Fprintf(w, "%d more, see --json\n", more)
	}
	if err := peakText(w, p); err != nil {
		return err
	}
	return leaksText(w, p, unit)
}

func profileTable(what string, rows []profile.Row, phases bool) *textTable {
	t := &textTable{align: "lrrrrr"}
	head := []string{what, "calls", "time", "fraction", "bytes allocated", "bytes freed"}
	if phases {
		t.align, head = "llrrrrr", slices.Insert(head, 1, "phase")
	}
	t.add(head...)
	for _, r := range rows {
		row := []string{abridged(r.Name), fmt.Sprintf("%.4g", r.Calls), seconds(r.Seconds), percent(r.Fraction), humanize.Comma(r.Alloc), humanize.Comma(r.Freed)}
		if phases {
			row = slices.Insert(row, 1, r.Phase)
		}
		t.add(row...)
	}
	return t
}

// peakText writes the values at the peak of the arena.
func peakText(w io.Writer, p *profile.Profile) error {
	if p.Peak == nil {
		return nil
	}
	fmt.Fprintf(w, "\npeak of the arena: %s live at %s (%s), arena %s%s\n\n", size(p.Peak.Bytes), abridged(p.Peak.Node), kinds(p.Peak.ByKind), size(p.Peak.Arena), besides(p.Held))
	t := &textTable{align: "lllr"}
	t.add("value", "node", "kind", "bytes")
	for _, v := range p.Peak.Values[:min(len(p.Peak.Values), shownValues)] {
		t.add(abridged(v.Name), abridged(v.Node), v.Kind, humanize.Comma(v.Bytes))
	}
	if err := t.write(w); err != nil {
		return err
	}
	if more := len(p.Peak.Values) - shownValues; more > 0 {
		fmt.Fprintf(w, "%d more, see --json\n", more)
	}
	return nil
}

func besides(held map[string]int64) string {
	if len(held) == 0 {
		return ""
	}
	return "; besides it " + kinds(held)
}

// kinds lists memory by kind, the largest first.
func kinds(bytes map[string]int64) string {
	names := slices.Sorted(maps.Keys(bytes))
	slices.SortStableFunc(names, func(a, b string) int { return int(min(max(bytes[b]-bytes[a], -1), 1)) })
	for i, name := range names {
		names[i] = name + " " + size(bytes[name])
	}
	return strings.Join(names, ", ")
}

// leaksText writes what lives longer than it is used, and what grows.
func leaksText(w io.Writer, p *profile.Profile, unit string) error {
	if v := p.Waste; v != nil {
		fmt.Fprintf(w, "\nlifetimes: values are in use for %s of their time in the arena; %s of it is alignment and gaps at the peak\n", percent(v.InUse()), size(v.Gaps))
		for _, l := range v.Late[:min(len(v.Late), shownValues)] {
			fmt.Fprintf(w, "  %s (%s) is released %d nodes after its last use\n", abridged(l.Name), size(l.Bytes), l.Nodes)
		}
		if v.Stale > 0 {
			fmt.Fprintf(w, "  outside of the arena: %s × nodes after the last use\n", size(v.Stale))
		}
	}
	if len(p.Growth) > 0 && !p.Growth[0].Checked {
		_, err := fmt.Fprintf(w, "growth: not checked: %d %ss are too few, at least %d are required\n", p.Steps, unit, profile.LeastSteps)
		return err
	}
	growing := slices.DeleteFunc(slices.Clone(p.Growth), func(g profile.Growth) bool { return !g.Grows })
	if len(p.Growth) > 0 && len(growing) == 0 {
		_, err := fmt.Fprintf(w, "growth: none over %d %ss\n", p.Steps, unit)
		return err
	}
	for _, g := range growing {
		if _, err := fmt.Fprintf(w, "growth: %s: %s → %s, %.4g a %s: a leak\n", g.Name, humanize.Comma(g.First), humanize.Comma(g.Last), g.PerStep, unit); err != nil {
			return err
		}
	}
	return nil
}

// LiveMemory is the memory of a running training in one line, with the resident memory of the process now and at its peak, 0 if it is not known.
func LiveMemory(l profile.Live, resident, peak int64) string {
	parts := []string{fmt.Sprintf("step %d", l.Step)}
	switch {
	case resident > 0:
		parts = append(parts, fmt.Sprintf("resident %s, peak %s", size(resident), size(peak)))
	case peak > 0:
		parts = append(parts, "peak resident "+size(peak))
	}
	parts = append(parts, "Go heap "+size(l.Heap), "arena: "+kindsOrNone(l.Arena)+" (largest: "+kindsOrNone(l.Most)+")", "held: "+kindsOrNone(l.Held), "samples "+size(l.Samples))
	return strings.Join(parts, " · ")
}

func kindsOrNone(bytes map[string]int64) string {
	if len(bytes) == 0 {
		return "–"
	}
	return kinds(bytes)
}
