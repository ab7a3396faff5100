package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/mcompress/mcompress/internal/memory"
)

//go:embed memory.html
var memoryText string

// A Memory is what is shown of the memory that a model needs while it runs.
type Memory struct {
	Model string         // its name
	Run   string         // what runs, as "inference, batch 8"
	Steps []string       // the node of each step
	Held  []memory.Block // what lies beside the arena all the time, such as weights; their lifetimes are not looked at
	Plan  *memory.Plan   // of the arena
}

// mostAlive is how many blocks the table lists before it sums up the rest.
const mostAlive = 100

// A memoryPage is what memory.html shows.
type memoryPage struct {
	*Memory
	Style   template.CSS
	Tiles   []tile
	Kinds   []memory.Kind
	Over    template.HTML // memory over time
	Arena   template.HTML // the blocks in it; empty where they are too many to be seen
	Peak    string
	Alive   []aliveRow
	Rest    int
	RestSum int64
}

// An aliveRow is a block that is alive at the peak, or all of one kind.
type aliveRow struct {
	Name, Kind string
	Bytes      int64
	Share      string
	From, To   string
}

// HTML writes m as one page that needs nothing from outside.
func (m *Memory) HTML(w io.Writer) error {
	t, err := template.New("memory").Funcs(template.FuncMap{"visible": visible, "size": size, "comma": count}).Parse(memoryText)
	if err != nil {
		return err
	}
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
	p := memoryPage{
		Memory: m, Style: template.CSS(colors + pageStyle), Tiles: m.tiles(line), Kinds: kindsOf(line),
		Over: over, Arena: arena, Peak: m.peak(line), Alive: m.alive(line),
	}
	if rest := len(p.Alive) - mostAlive; rest > 0 {
		p.Rest = rest
		for _, r := range p.Alive[mostAlive:] {
			p.RestSum += r.Bytes
		}
		p.Alive = p.Alive[:mostAlive]
	}
	return t.Execute(w, p)
}

// SVG writes the plot of memory over time as a file of its own.
func (m *Memory) SVG(w io.Writer) error {
	line, err := m.timeline()
	if err != nil {
		return err
	}
	over, err := m.overTime(line)
	if err != nil {
		return err
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" font-family="Liberation Sans, Arial, Helvetica, sans-serif" style="background: var(--card)" width="%d" height="%d" `, chartWidth, timelineHeight)
	svg := strings.Replace(string(over), "<svg ", head, 1)
	_, err = io.WriteString(w, strings.Replace(svg, ">", "><style>"+colors+"</style>", 1))
	return err
}

// timeline is that of the arena's blocks with what lies beside them.
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

// peak says where the most bytes are alive.
func (m *Memory) peak(line *memory.Timeline) string {
	if len(line.Peaks) == 0 || len(m.Steps) == 0 {
		return "nothing needs memory"
	}
	text := fmt.Sprintf("at %s, step %s of %s", shorten(m.step(line.Peaks[0]), 40), count(int64(line.Peaks[0]+1)), count(int64(len(m.Steps))))
	if more := len(line.Peaks) - 1; more > 0 {
		text += fmt.Sprintf(", and at %s more", count(int64(more)))
	}
	return text
}

func (m *Memory) tiles(line *memory.Timeline) []tile {
	arena := "as small as it can be"
	if m.Plan.Size > m.Plan.Bound {
		arena = fmt.Sprintf("%.2f %% above its lower bound, %s", 100*m.Plan.Fragmentation(), size(m.Plan.Bound))
	}
	total := m.held() + m.Plan.Size
	return []tile{
		{"In all", size(total), "held and arena", ""},
		{"Held all the time", size(m.held()), "beside the arena: weights and the like", ""},
		{"Arena", size(m.Plan.Size), arena, ""},
		{"Alive at the peak", size(line.Peak), m.peak(line), ""},
	}
}

// kindsOf are the kinds that have bytes at some step, in the order of the stack.
func kindsOf(line *memory.Timeline) []memory.Kind {
	var ks []memory.Kind
	for k := range kindColors {
		for _, u := range line.Alive {
			if u[k] > 0 {
				ks = append(ks, memory.Kind(k))
				break
			}
		}
	}
	return ks
}

// alive is the table of what is alive at the first peak: what outlives runs by kind, then
// the other blocks, the largest first.
func (m *Memory) alive(line *memory.Timeline) []aliveRow {
	if len(line.Peaks) == 0 {
		return nil
	}
	var sums, blocks [len(kindColors)]int64
	var rows []aliveRow
	row := func(name string, k memory.Kind, bytes int64) aliveRow {
		return aliveRow{Name: name, Kind: k.String(), Bytes: bytes, Share: percent(float64(bytes) / float64(line.Peak))}
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
	var together []aliveRow
	for k, n := range sums {
		if n > 0 {
			together = append(together, row(blocksOf(blocks[k])+", together", memory.Kind(k), n))
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
