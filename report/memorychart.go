package report

import (
	"html/template"

	"github.com/mcompress/mcompress/internal/memory"
)

const (
	timelineHeight = 380
	arenaHeight    = 340
	maxColumns     = 800  // of a plot, each for one step or for the largest of several
	maxBlocks      = 2000 // blocks of an arena that are drawn
	maxEdged       = 300  // maximum number of blocks whose edges do not hide their interiors
)

var kindColors = [...]color{
	memory.Weight:     "var(--weight)",
	memory.State:      "var(--state)",
	memory.Gradient:   "var(--gradient)",
	memory.Activation: "var(--activation)",
	memory.Recomputed: "var(--recomputed)",
	memory.Scratch:    "var(--scratch)",
}

// overTime stacks the live bytes of each step by kind and marks the peak and the arena.
func (m *Memory) overTime(line *memory.Timeline) (template.HTML, error) {
	steps := len(line.Live)
	p := m.plot("Live bytes at each step, peak "+size(line.Peak), timelineHeight, steps)
	s := newStack(line)
	for _, k := range kindsOf(line) {
		p.polygon(s.layer(k), kindColors[k], "")
	}
	top := float64(max(line.Peak, m.held()+m.Plan.Size))
	p.y.max = max(1, top*1.12)
	p.y.ticks = byteTicks(0, p.y.max)
	m.markArena(p, steps)
	if len(line.Peaks) > 0 {
		m.markPeak(p, line)
	}
	return p.svg()
}

// arena draws each block at its offset, from its first to its last step.
func (m *Memory) arena() (template.HTML, error) {
	blocks := m.Plan.Blocks
	if m.Plan.Size == 0 || len(blocks) > maxBlocks || len(m.Steps) == 0 {
		return "", nil
	}
	p := m.plot("Blocks in the arena by offset and lifetime", arenaHeight, len(m.Steps))
	p.y.max = float64(m.Plan.Size)
	p.y.ticks = byteTicks(0, p.y.max)
	edge := paper
	if len(blocks) > maxEdged {
		edge = ""
	}
	for i, b := range blocks {
		if b.Bytes == 0 {
			continue
		}
		x0, x1 := float64(b.First), float64(b.Last+1)
		y0, y1 := float64(m.Plan.Offsets[i]), float64(m.Plan.Offsets[i]+b.Bytes)
		p.polygon([]point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}, kindColors[b.Kind], edge)
	}
	return p.svg()
}

// plot is an empty plot of bytes over steps.
func (m *Memory) plot(title string, height float64, steps int) *plot {
	p := &plot{caption: caption{title: title}, height: height, x: axis{max: float64(steps)}}
	if steps > maxNamed {
		p.x.ticks = stepTicks("step", steps)
		return p
	}
	p.x.slanted = true
	for i := range m.Steps {
		t := named(m.step(i), maxNodeName)
		t.at = float64(i) + 0.5
		p.x.ticks = append(p.x.ticks, t)
	}
	return p
}

// A stack is bytes over steps, layer by layer; a column is one step or several.
type stack struct {
	edges []float64 // of the columns, one more than there are of them
	usage []memory.Usage
	floor []float64 // lower edge of the next layer
}

// newStack shows, where columns are fewer than steps, the step of each column with the most live bytes,
// so that no peak is lost.
func newStack(line *memory.Timeline) *stack {
	n := len(line.Live)
	c := min(n, maxColumns)
	s := &stack{edges: []float64{0}, floor: make([]float64, c)}
	for i := range c {
		from, to := i*n/c, (i+1)*n/c
		most := line.Live[from]
		for _, u := range line.Live[from:to] {
			if u.Total() > most.Total() {
				most = u
			}
		}
		s.edges, s.usage = append(s.edges, float64(to)), append(s.usage, most)
	}
	return s
}

// layer adds kind k to the stack and returns its outline.
func (s *stack) layer(k memory.Kind) []point {
	var up, down []point
	for i, u := range s.usage {
		low := s.floor[i]
		s.floor[i] += float64(u[k])
		for _, x := range s.edges[i : i+2] {
			up = append(up, point{x, s.floor[i]})
			down = append(down, point{x, low})
		}
	}
	for i := range down {
		up = append(up, down[len(down)-1-i])
	}
	return up
}

// markArena marks the memory that is allocated.
func (m *Memory) markArena(p *plot, steps int) {
	y := float64(m.held() + m.Plan.Size)
	text := "arena " + size(m.Plan.Size)
	if len(m.Held) > 0 {
		text = "persistent and arena " + size(m.held()+m.Plan.Size)
	}
	p.mark(point{float64(steps), y}, point{0, y}, note{label: tick{label: text}, leftward: true})
}

// markPeak marks the first peak. Its note is above that of the arena, on the wider side.
func (m *Memory) markPeak(p *plot, line *memory.Timeline) {
	step := line.Peaks[0]
	x, text := float64(step)+0.5, "peak "+size(line.Peak)
	if name := m.step(step); name != "" {
		text += " at " + shorten(name, 40)
	}
	p.mark(
		point{x, p.y.max},
		point{x, 0},
		note{label: tick{label: text}, downward: true, leftward: step > len(line.Live)/2},
	)
}
