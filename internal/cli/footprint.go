package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/memplan"
)

// Footprint writes facts about memory for people, with so many of the blocks that are alive at the
// peak.
func Footprint(w io.Writer, s Style, path string, f *memplan.Facts, top int) error {
	parts := []part{{path, weightTable(f)}}
	if len(f.Runs) > 0 {
		last := f.Runs[len(f.Runs)-1]
		parts = append(parts, part{"memory of a run" + withWorkers(f), runTable(f)})
		if b := f.Budget; b != nil {
			parts = append(parts, part{fmt.Sprintf("largest batch in %s bytes", humanize.Comma(b.Bytes)), budgetTable(f, b)})
		}
		parts = append(parts,
			part{peakTitle(f, last), aliveTable(last, top)},
			part{"over time" + ofBatch(f, last.Batch), overTime(last)},
		)
	}
	if f.Layout != nil {
		parts = append(parts, part{"channels last (NHWC) instead of channels first (NCHW)", layoutTable(f.Layout)})
	}
	if f.Measured != nil {
		parts = append(parts, part{"measured" + ofBatch(f, f.Measured.Batch), measuredTable(s, f)})
	}
	for _, p := range parts {
		if err := p.write(w, s); err != nil {
			return err
		}
	}
	return nil
}

// A part is a table with its title.
type part struct {
	title string
	table *Table
}

func (p part) write(w io.Writer, s Style) error {
	if len(p.table.rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, s.Bold(p.title)); err != nil {
		return err
	}
	return p.table.Write(w)
}

func ofBatch(f *memplan.Facts, batch int64) string {
	if f.Fixed {
		return ""
	}
	return fmt.Sprintf(", batch %d", batch)
}

func withWorkers(f *memplan.Facts) string {
	if f.Workers == 1 {
		return ", 1 worker"
	}
	return fmt.Sprintf(", %d workers", f.Workers)
}

func weightTable(f *memplan.Facts) *Table {
	t := &Table{Indent: "  ", Right: "lrrr"}
	held := map[string]string{}
	if f.Held != nil {
		t.Add("weights", "tensors", "bytes", "held at run time")
		for _, d := range f.Held.DTypes {
			held[d.DType] = sizeOrNone(d.Bytes)
		}
	} else {
		t.Add("weights", "tensors", "bytes")
	}
	for _, d := range f.Weights.DTypes {
		t.Add(d.DType, fmt.Sprint(d.Tensors), sizeOrNone(d.Bytes), held[d.DType])
		delete(held, d.DType)
	}
	if f.Held == nil {
		t.Add("in all", fmt.Sprint(f.Weights.Tensors), sizeOrNone(f.Weights.Bytes))
		return t
	}
	for _, d := range f.Held.DTypes { // types that only the run has
		if bytes, left := held[d.DType]; left {
			t.Add(d.DType, "", "", bytes)
		}
	}
	t.Add("in all", fmt.Sprint(f.Weights.Tensors), sizeOrNone(f.Weights.Bytes), sizeOrNone(f.Held.Bytes))
	return t
}

func runTable(f *memplan.Facts) *Table {
	t := &Table{Indent: "  ", Right: "rrrrrl"}
	t.Add("batch", "weights", "inputs, outputs", "arena", "in all", "")
	for _, r := range f.Runs {
		batch := fmt.Sprint(r.Batch)
		if f.Fixed {
			batch = "fixed"
		}
		t.Add(batch, size(f.Held.Bytes), size(r.Beside()), size(r.Arena), size(r.Total), notes(r))
	}
	return t
}

// notes are what a run's numbers leave open.
func notes(r *memplan.Run) string {
	var words []string
	if r.Arena > r.Bound {
		words = append(words, fmt.Sprintf("%.1f %% of the arena are gaps", 100*float64(r.Arena-r.Bound)/float64(r.Arena)))
	}
	switch n := len(r.Dynamic); n {
	case 0:
	case 1:
		words = append(words, "not counted: 1 node whose results only a run tells")
	default:
		words = append(words, fmt.Sprintf("not counted: %d nodes whose results only a run tells", n))
	}
	return strings.Join(words, "; ")
}

// budgetTable is the largest batch that fits, and why no larger one does.
func budgetTable(f *memplan.Facts, b *memplan.Budget) *Table {
	t := &Table{Indent: "  ", Right: "rrl"}
	row := func(batch int64, total int64, verdict string) {
		name := fmt.Sprintf("batch %d", batch)
		if f.Fixed {
			name = "fixed"
		}
		t.Add(name, humanize.Comma(total), verdict)
	}
	const fits, exceeds = "bytes fit", "bytes do not"
	if b.Batch == 0 {
		row(1, b.Total, exceeds)
		return t
	}
	row(b.Batch, b.Total, fits)
	if b.Next > 0 {
		row(b.Batch+1, b.Next, exceeds)
	}
	return t
}

func peakTitle(f *memplan.Facts, r *memplan.Run) string {
	return fmt.Sprintf("alive at the peak%s: %s of the arena at %s, step %d of %d", ofBatch(f, r.Batch), size(r.Peak), abridged(r.AtNode), r.AtStep+1, len(r.Steps))
}

func aliveTable(r *memplan.Run, top int) *Table {
	t := &Table{Indent: "  ", Right: "lrrll"}
	rest, others := int64(0), 0
	for i, b := range r.Alive {
		if i >= top {
			rest += b.Bytes
			others++
			continue
		}
		what, life := abridged(b.Name), abridged(b.From)+" → "+abridged(b.To)
		if b.Kind == "scratch" {
			what, life = "scratch", abridged(b.From)
		}
		t.Add(what, size(b.Bytes), percent(share(b.Bytes, r.Peak)), b.Type, life)
	}
	if others > 0 {
		t.Add(fmt.Sprintf("%d more", others), size(rest), percent(share(rest, r.Peak)))
	}
	return t
}

// abridged is a name of which exporters have made a path, so short that lines stay readable.
func abridged(name string) string {
	const longest, head = 40, 12
	if r := []rune(name); len(r) > longest {
		return string(r[:head]) + "…" + string(r[len(r)-(longest-head-1):])
	}
	return name
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func layoutTable(l *memplan.Layout) *Table {
	t := &Table{Indent: "  ", Right: "lrrl"}
	t.Add("nodes with channels", fmt.Sprint(l.Sensitive), "", fmt.Sprintf("of %d", l.Nodes))
	for _, m := range []struct {
		what  string
		moves []memplan.Move
	}{{"transposes to add", l.Added}, {"to keep", l.Kept}, {"to remove", l.Vanished}} {
		t.Add(m.what, fmt.Sprint(len(m.moves)), moved(m.moves), largest(m.moves))
	}
	t.Add("patches now", humanize.Comma(l.First.Runs), sizeOrNone(l.First.Bytes), "pieces that convolutions copy, and their bytes")
	t.Add("then", humanize.Comma(l.Last.Runs), sizeOrNone(l.Last.Bytes), "")
	switch {
	case l.Saved > 0:
		t.Add("in all", "", size(l.Saved), "less are read and written")
	case l.Saved < 0:
		t.Add("in all", "", size(-l.Saved), "more are read and written")
	default:
		t.Add("in all", "", "–", "as many bytes are read and written")
	}
	if l.Unknown > 0 {
		t.Add("not counted", fmt.Sprint(l.Unknown), "", "values whose size only a run tells")
	}
	return t
}

func moved(ms []memplan.Move) string {
	n := int64(0)
	for _, m := range ms {
		n += m.Bytes
	}
	return sizeOrNone(n)
}

// largest names the largest of several transposes.
func largest(ms []memplan.Move) string {
	if len(ms) == 0 {
		return ""
	}
	most := ms[0]
	for _, m := range ms {
		if m.Bytes > most.Bytes {
			most = m
		}
	}
	return fmt.Sprintf("the largest of %s: %s", abridged(most.Value), size(most.Bytes))
}

func measuredTable(s Style, f *memplan.Facts) *Table {
	t := &Table{Indent: "  ", Right: "lrl"}
	m, r := f.Measured, f.Runs[len(f.Runs)-1]
	same := func(got, want int64) string {
		if got == want {
			return s.Good("as planned, to the byte")
		}
		return s.Bad(fmt.Sprintf("planned were %s", humanize.Comma(want)))
	}
	t.Add("arena", humanize.Comma(m.Arena), same(m.Arena, r.Arena))
	t.Add("peak", humanize.Comma(m.Peak), same(m.Peak, r.Peak)+" at "+abridged(m.AtNode))
	t.Add("written", humanize.Comma(m.Written), "of the arena: scratch is not always used in full")
	t.Add("weights", humanize.Comma(m.Weights), "in the form that nodes want; planned were "+humanize.Comma(f.Held.Bytes))
	if m.Heap > 0 {
		t.Add("heap", humanize.Comma(m.Heap), "results of nodes that the plan does not count")
	}
	return t
}
