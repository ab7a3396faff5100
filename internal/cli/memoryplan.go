package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/report/memoryplan"
)

// MemoryPlan writes a memory plan as text, with top of the blocks that are live at the peak.
func MemoryPlan(w io.Writer, s Style, path string, f *memoryplan.Plan, top int) error {
	parts := []part{{path, weightTable(f)}}
	if len(f.Runs) > 0 {
		last := f.Runs[len(f.Runs)-1]
		parts = append(parts, part{"memory plan" + withWorkers(f), runTable(f)})
		if b := f.Budget; b != nil {
			parts = append(parts, part{fmt.Sprintf("largest batch within %s bytes", humanize.Comma(b.Bytes)), budgetTable(f, b)})
		}
		parts = append(parts,
			part{peakTitle(f, last), liveTable(last, top)},
			part{"live bytes over time" + ofBatch(f, last.Batch), overTime(last)},
		)
	}
	if f.Layout != nil {
		parts = append(parts, part{"channels last (NHWC) instead of channels first (NCHW)", layoutTable(f.Layout)})
	}
	if f.Measured != nil {
		parts = append(parts, part{"measured, in bytes" + ofBatch(f, f.Measured.Batch), measuredTable(s, f)})
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
	table *textTable
}

func (p part) write(w io.Writer, s Style) error {
	if len(p.table.rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, s.bold(p.title)); err != nil {
		return err
	}
	return p.table.write(w)
}

func ofBatch(f *memoryplan.Plan, batch int64) string {
	if f.Fixed {
		return ""
	}
	return fmt.Sprintf(", batch %d", batch)
}

func withWorkers(f *memoryplan.Plan) string {
	if f.Workers == 1 {
		return ", 1 worker"
	}
	return fmt.Sprintf(", %d workers", f.Workers)
}

func weightTable(f *memoryplan.Plan) *textTable {
	t := &textTable{indent: "  ", align: "lrrrr"}
	held := map[string]string{}
	if f.Held != nil {
		t.add("weights", "tensors", "size", "engine", "ONNX Runtime")
		for _, d := range f.Held.DTypes {
			held[d.DType] = sizeOrNone(d.Bytes)
		}
	} else {
		t.add("weights", "tensors", "size")
	}
	for _, d := range f.Weights.DTypes {
		t.add(d.DType, fmt.Sprint(d.Tensors), sizeOrNone(d.Bytes), held[d.DType])
		delete(held, d.DType)
	}
	if f.Held == nil {
		t.add("total", fmt.Sprint(f.Weights.Tensors), sizeOrNone(f.Weights.Bytes))
		return t
	}
	for _, d := range f.Held.DTypes { // types that only the run has
		if bytes, left := held[d.DType]; left {
			t.add(d.DType, "", "", bytes)
		}
	}
	t.add("total", fmt.Sprint(f.Weights.Tensors), sizeOrNone(f.Weights.Bytes), sizeOrNone(f.Held.Bytes), sizeOrNone(f.ORT))
	return t
}

func runTable(f *memoryplan.Plan) *textTable {
	t := &textTable{indent: "  ", align: "rrrrrl"}
	t.add("batch", "weights", "inputs, outputs", "arena", "total", "")
	for _, r := range f.Runs {
		batch := fmt.Sprint(r.Batch)
		if f.Fixed {
			batch = "fixed"
		}
		t.add(batch, size(f.Held.Bytes), size(r.PortBytes()), size(r.Arena), size(r.Total), notes(r))
	}
	return t
}

// notes are gaps in the arena and nodes that are not counted.
func notes(r *memoryplan.Run) string {
	var words []string
	if r.Arena > r.Bound {
		words = append(words, fmt.Sprintf("fragmentation of the arena %.1f %%", 100*float64(r.Arena-r.Bound)/float64(r.Arena)))
	}
	switch n := len(r.Dynamic); n {
	case 0:
	case 1:
		words = append(words, "not counted: 1 node with data-dependent output sizes")
	default:
		words = append(words, fmt.Sprintf("not counted: %d nodes with data-dependent output sizes", n))
	}
	return strings.Join(words, "; ")
}

// budgetTable is the largest batch that fits, and the next one.
func budgetTable(f *memoryplan.Plan, b *memoryplan.Budget) *textTable {
	t := &textTable{indent: "  ", align: "rrl"}
	row := func(batch int64, total int64, result string) {
		name := fmt.Sprintf("batch %d", batch)
		if f.Fixed {
			name = "fixed"
		}
		t.add(name, humanize.Comma(total), result)
	}
	const fits, exceeds = "bytes, within the budget", "bytes, above the budget"
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

func peakTitle(f *memoryplan.Plan, r *memoryplan.Run) string {
	return fmt.Sprintf("live at the peak%s: %s of the arena at %s, step %d of %d", ofBatch(f, r.Batch), size(r.Peak), abridged(r.AtNode), r.AtStep+1, len(r.Steps))
}

func liveTable(r *memoryplan.Run, top int) *textTable {
	t := &textTable{indent: "  ", align: "lrrll"}
	rest, others := int64(0), 0
	for i, b := range r.Live {
		if i >= top {
			rest += b.Bytes
			others++
			continue
		}
		what, life := abridged(b.Name), abridged(b.From)+" → "+abridged(b.To)
		if b.Kind == "scratch" {
			what, life = "scratch", abridged(b.From)
		}
		t.add(what, size(b.Bytes), percent(fraction(b.Bytes, r.Peak)), b.Type, life)
	}
	if others > 0 {
		t.add(fmt.Sprintf("%d more", others), size(rest), percent(fraction(rest, r.Peak)))
	}
	return t
}

// abridged is a long name, as exporters make of paths, without its middle.
func abridged(name string) string {
	const longest, head = 40, 12
	if r := []rune(name); len(r) > longest {
		return string(r[:head]) + "…" + string(r[len(r)-(longest-head-1):])
	}
	return name
}

func fraction(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func layoutTable(l *memoryplan.Layout) *textTable {
	t := &textTable{indent: "  ", align: "lrrl"}
	t.add("layout-sensitive nodes", fmt.Sprint(l.Sensitive), "", fmt.Sprintf("of %d", l.Nodes))
	for _, m := range []struct {
		what  string
		moves []memoryplan.Move
	}{{"transposes to add", l.Added}, {"transposes to keep", l.Kept}, {"transposes to remove", l.Vanished}} {
		t.add(m.what, fmt.Sprint(len(m.moves)), moved(m.moves), largest(m.moves))
	}
	t.add("im2col copies, NCHW", humanize.Comma(l.First.Runs), sizeOrNone(l.First.Bytes), "contiguous pieces and bytes")
	t.add("im2col copies, NHWC", humanize.Comma(l.Last.Runs), sizeOrNone(l.Last.Bytes), "")
	switch {
	case l.Saved > 0:
		t.add("memory traffic", "", "-"+size(l.Saved), "")
	case l.Saved < 0:
		t.add("memory traffic", "", "+"+size(-l.Saved), "")
	default:
		t.add("memory traffic", "", "–", "unchanged")
	}
	if l.Unknown > 0 {
		t.add("not counted", fmt.Sprint(l.Unknown), "", "values of data-dependent size")
	}
	return t
}

func moved(ms []memoryplan.Move) string {
	n := int64(0)
	for _, m := range ms {
		n += m.Bytes
	}
	return sizeOrNone(n)
}

// largest names the largest of several transposes.
func largest(ms []memoryplan.Move) string {
	if len(ms) == 0 {
		return ""
	}
	most := ms[0]
	for _, m := range ms {
		if m.Bytes > most.Bytes {
			most = m
		}
	}
	return fmt.Sprintf("largest: %s, %s", abridged(most.Value), size(most.Bytes))
}

func measuredTable(s Style, f *memoryplan.Plan) *textTable {
	t := &textTable{indent: "  ", align: "lrl"}
	m, r := f.Measured, f.Runs[len(f.Runs)-1]
	same := func(got, want int64) string {
		if got == want {
			return s.good("equal to the plan")
		}
		return s.bad(fmt.Sprintf("plan: %s", humanize.Comma(want)))
	}
	t.add("arena", humanize.Comma(m.Arena), same(m.Arena, r.Arena))
	t.add("peak", humanize.Comma(m.Peak), same(m.Peak, r.Peak)+", at "+abridged(m.AtNode))
	t.add("written", humanize.Comma(m.Written), "of the arena; scratch may be used in part")
	t.add("weights", humanize.Comma(m.Weights), "after prepacking; plan: "+humanize.Comma(f.Held.Bytes))
	if m.Heap > 0 {
		t.add("heap", humanize.Comma(m.Heap), "outputs of nodes that the plan does not count")
	}
	return t
}
