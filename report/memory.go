package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/mcompress/mcompress/internal/memory"
)

//go:embed memory.html
var memoryText string

// A Memory is the content of a page about the memory that a model needs while it runs.
type Memory struct {
	Model string         // its name
	Run   string         // the kind of run, as "inference, batch 8"
	Steps []string       // the node of each step
	Held  []memory.Block // persistent blocks outside the arena, such as weights; their lifetimes are ignored
	Plan  *memory.Plan   // of the arena

	Compared []MemoryCurve // of several runs; may be empty
}

// maxLive is the number of blocks in the table; the rest is summed up.
const maxLive = 100

// A memoryPage is the data of memory.html.
type memoryPage struct {
	document
	*Memory
	Tiles   []tile
	Kinds   []memory.Kind
	Curves  []comparedCurve
	Several template.HTML // memory over time of several runs
	Over    template.HTML // memory over time
	Arena   template.HTML // the blocks in it; empty where they are too many to be visible
	Peak    string
	Live    []liveRow
	Rest    int
	RestSum int64
}

// A liveRow is a block that is live at the peak, or all of one kind.
type liveRow struct {
	Name, Kind string
	Bytes      int64
	Fraction   string
	From, To   string
}

// HTML writes m as a self-contained page.
func (m *Memory) HTML(w io.Writer) error {
	line, err := m.timeline()
	if err != nil {
		return err
	}
	over, err := m.overTime(line)
	if err != nil {
		return err
	}
	arena, err := m.arena()
	if err != nil {
		return err
	}
	several, err := m.compared()
	if err != nil {
		return err
	}
	p := memoryPage{
		Curves: m.curves(), Several: several,
		document: newDocument(visible(m.Model) + " · memory"), Memory: m, Tiles: m.tiles(line), Kinds: kindsOf(line),
		Over: over, Arena: arena, Peak: m.peak(line), Live: m.liveTable(line),
	}
	if rest := len(p.Live) - maxLive; rest > 0 {
		p.Rest = rest
		for _, r := range p.Live[maxLive:] {
			p.RestSum += r.Bytes
		}
		p.Live = p.Live[:maxLive]
	}
	return execute(w, memoryText, p)
}

// timeline is that of the arena's and the persistent blocks.
func (m *Memory) timeline() (*memory.Timeline, error) {
	blocks := append([]memory.Block(nil), m.Plan.Blocks...)
	for _, b := range m.Held {
		b.First, b.Last = 0, max(0, len(m.Steps)-1)
		blocks = append(blocks, b)
	}
	return memory.NewTimeline(blocks, max(1, len(m.Steps)))
}

func (m *Memory) held() int64 {
	var n int64
	for _, b := range m.Held {
		n += b.Bytes
	}
	return n
}

// step names the node of a step.
func (m *Memory) step(i int) string {
	if i >= len(m.Steps) {
		return ""
	}
	if m.Steps[i] == "" {
		return fmt.Sprintf("step %d", i)
	}
	return visible(m.Steps[i])
}

// peak is the step with the most live bytes.
func (m *Memory) peak(line *memory.Timeline) string {
	if len(line.Peaks) == 0 || len(m.Steps) == 0 {
		return "no live bytes"
	}
	text := fmt.Sprintf(
		"at %s, step %s of %s",
		shorten(m.step(line.Peaks[0]), 40),
		count(int64(line.Peaks[0]+1)),
		count(int64(len(m.Steps))),
	)
	if more := len(line.Peaks) - 1; more > 0 {
		text += fmt.Sprintf(", and at %s more steps", count(int64(more)))
	}
	return text
}

func (m *Memory) tiles(line *memory.Timeline) []tile {
	arena := "no fragmentation"
	if m.Plan.Size > m.Plan.Bound {
		arena = fmt.Sprintf("fragmentation %.2f %%, lower bound %s", 100*m.Plan.Fragmentation(), size(m.Plan.Bound))
	}
	total := m.held() + m.Plan.Size
	return []tile{
		{Name: "Total memory", Big: size(total), Small: "persistent and arena"},
		{Name: "Persistent", Big: size(m.held()), Small: "weights and other blocks outside the arena"},
		{Name: "Arena", Big: size(m.Plan.Size), Small: arena},
		{Name: "Peak", Big: size(line.Peak), Small: m.peak(line)},
	}
}

// kindsOf are the kinds with live bytes at any step, in the order of the stack.
func kindsOf(line *memory.Timeline) []memory.Kind {
	var ks []memory.Kind
	for k := range kindColors {
		for _, u := range line.Live {
			if u[k] > 0 {
				ks = append(ks, memory.Kind(k))
				break
			}
		}
	}
	return ks
}

// liveTable is the table of live blocks at the first peak: weights and states by kind, then
// the other blocks, the largest first.
func (m *Memory) liveTable(line *memory.Timeline) []liveRow {
	if len(line.Peaks) == 0 {
		return nil
	}
	var sums, blocks [len(kindColors)]int64
	var rows []liveRow
	row := func(name string, k memory.Kind, bytes int64) liveRow {
		return liveRow{
			Name:     name,
			Kind:     k.String(),
			Bytes:    bytes,
			Fraction: percent(float64(bytes) / float64(line.Peak)),
		}
	}
	for _, b := range line.At(line.Peaks[0]) {
		if b.Kind == memory.Weight || b.Kind == memory.State {
			sums[b.Kind] += b.Bytes
			blocks[b.Kind]++
			continue
		}
		r := row(b.Name, b.Kind, b.Bytes)
		r.From, r.To = m.step(b.First), m.step(b.Last)
		rows = append(rows, r)
	}
	var together []liveRow
	for k, n := range sums {
		if n > 0 {
			together = append(together, row(blocksOf(blocks[k]), memory.Kind(k), n))
		}
	}
	return append(together, rows...)
}

func blocksOf(n int64) string {
	if n == 1 {
		return "1 block"
	}
	return count(n) + " blocks"
}
