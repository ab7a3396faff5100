package report

import (
	"fmt"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mcompress/mcompress/internal/memory"
)

const (
	overHeight  = 380
	arenaHeight = 340
	mostNamed   = 36   // steps up to which an axis names the nodes
	columns     = 800  // of a plot, each for one step or for the largest of several
	mostDrawn   = 2000 // blocks of an arena
	mostEdged   = 300  // blocks up to which edges do not hide what they enclose
)

// overTime stacks the bytes alive at each step by kind and marks the peak and the arena.
func (m *Memory) overTime(line *memory.Timeline) (template.HTML, error) {
	p := m.frame(len(line.Alive))
	s := newSteps(line)
	for _, k := range kindsOf(line) {
		if err := area(p, s.layer(k), byKind[k]); err != nil {
			return "", err
		}
	}
	top := float64(max(line.Peak, m.held()+m.Plan.Size))
	p.Y.Max = max(1, top*1.12)
	if err := m.markArena(p, len(line.Alive)); err != nil {
		return "", err
	}
	if len(line.Peaks) > 0 {
		if err := m.markPeak(p, line); err != nil {
			return "", err
		}
	}
	return drawn(p, "Bytes alive at each step", overHeight)
}

// arena draws each block where it lies, from its first to its last step.
func (m *Memory) arena() (template.HTML, error) {
	blocks := m.Plan.Blocks
	if m.Plan.Size == 0 || len(blocks) > mostDrawn || len(m.Steps) == 0 {
		return "", nil
	}
	p := m.frame(len(m.Steps))
	p.Y.Max = float64(m.Plan.Size)
	edge := draw.LineStyle{Color: paper, Width: 0.5}
	if len(blocks) > mostEdged {
		edge.Width = 0
	}
	for i, b := range blocks {
		if b.Bytes == 0 {
			continue
		}
		x0, x1 := float64(b.First), float64(b.Last+1)
		y0, y1 := float64(m.Plan.Offsets[i]), float64(m.Plan.Offsets[i]+b.Bytes)
		r, err := plotter.NewPolygon(plotter.XYs{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
		if err != nil {
			return "", fmt.Errorf("report: arena: %w", err)
		}
		r.Color, r.LineStyle = byKind[b.Kind], edge
		p.Add(r)
	}
	return drawn(p, "Blocks in the arena", arenaHeight)
}

// frame is a plot of bytes over steps without contents.
func (m *Memory) frame(steps int) *plot.Plot {
	p := framed()
	p.X.Min, p.X.Max = 0, float64(steps)
	p.X.Tick.Marker = m.stepTicks(steps)
	if steps <= mostNamed {
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
	p.Y.Min = 0
	p.Y.Tick.Marker = byteTicks{}
	return p
}

// stepTicks names the nodes where they are few, and numbers the steps where they are not.
func (m *Memory) stepTicks(steps int) plot.ConstantTicks {
	var ts plot.ConstantTicks
	if steps <= mostNamed {
		for i := range m.Steps {
			ts = append(ts, plot.Tick{Value: float64(i) + 0.5, Label: shorten(m.step(i), 22)})
		}
		return ts
	}
	for _, t := range marks(float64(steps), 1, func(v float64) string { return "step " + count(int64(v)) }) {
		if t.Value > 0 {
			ts = append(ts, plot.Tick{Value: t.Value - 0.5, Label: t.Label})
		}
	}
	return ts
}

// A stepped is a stack of bytes over steps, some of which may stand for several.
type stepped struct {
	edges []float64 // of the columns, one more than there are of them
	usage []memory.Usage
	floor []float64 // what lies below the next layer
}

// newSteps takes, where columns are fewer than steps, the step of each column at which most
// is alive, so that no peak is lost.
func newSteps(line *memory.Timeline) *stepped {
	n := len(line.Alive)
	c := min(n, columns)
	s := &stepped{edges: []float64{0}, floor: make([]float64, c)}
	for i := range c {
		from, to := i*n/c, (i+1)*n/c
		most := line.Alive[from]
		for _, u := range line.Alive[from:to] {
			if u.Total() > most.Total() {
				most = u
			}
		}
		s.edges, s.usage = append(s.edges, float64(to)), append(s.usage, most)
	}
	return s
}

// layer puts kind k on the stack and returns its outline.
func (s *stepped) layer(k memory.Kind) plotter.XYs {
	var up, down plotter.XYs
	for i, u := range s.usage {
		low := s.floor[i]
		s.floor[i] += float64(u[k])
		for _, x := range s.edges[i : i+2] {
			up = append(up, plotter.XY{X: x, Y: s.floor[i]})
			down = append(down, plotter.XY{X: x, Y: low})
		}
	}
	for i := range down {
		up = append(up, down[len(down)-1-i])
	}
	return up
}

func area(p *plot.Plot, outline plotter.XYs, c color.Color) error {
	a, err := plotter.NewPolygon(outline)
	if err != nil {
		return fmt.Errorf("report: memory: %w", err)
	}
	a.Color, a.LineStyle.Width = c, 0
	p.Add(a)
	return nil
}

// markArena draws the line up to which memory is taken.
func (m *Memory) markArena(p *plot.Plot, steps int) error {
	y := float64(m.held() + m.Plan.Size)
	words := "arena " + size(m.Plan.Size)
	if len(m.Held) > 0 {
		words = "held and arena " + size(m.held()+m.Plan.Size)
	}
	at := note{words, plotter.XY{X: float64(steps), Y: y}, draw.XRight, draw.YBottom}
	return mark(p, plotter.XYs{{X: 0, Y: y}, {X: float64(steps), Y: y}}, at)
}

// markPeak draws a line at the first peak. Its note stands above that of the arena, on the
// side with more room.
func (m *Memory) markPeak(p *plot.Plot, line *memory.Timeline) error {
	step := line.Peaks[0]
	x, top := float64(step)+0.5, p.Y.Max
	at := note{"peak " + size(line.Peak), plotter.XY{X: x, Y: top}, draw.XLeft, draw.YTop}
	if name := m.step(step); name != "" {
		at.text += " at " + shorten(name, 40)
	}
	if step > len(line.Alive)/2 {
		at.x = draw.XRight
	}
	return mark(p, plotter.XYs{{X: x, Y: 0}, {X: x, Y: top}}, at)
}

// A note is words at a point of a plot, on the side of it that x and y say.
type note struct {
	text string
	at   plotter.XY
	x    text.XAlignment
	y    text.YAlignment
}

// mark draws a dashed line and a note.
func mark(p *plot.Plot, ends plotter.XYs, n note) error {
	l, err := plotter.NewLine(ends)
	if err != nil {
		return fmt.Errorf("report: memory: %w", err)
	}
	l.LineStyle = draw.LineStyle{Color: strong, Width: 0.9, Dashes: []vg.Length{4, 3}}
	words, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{n.at}, Labels: []string{n.text}})
	if err != nil {
		return fmt.Errorf("report: memory: %w", err)
	}
	words.TextStyle[0] = style(textSize - 1)
	words.TextStyle[0].Color, words.TextStyle[0].XAlign, words.TextStyle[0].YAlign = strong, n.x, n.y
	words.Offset = vg.Point{X: 4 + 8*vg.Length(n.x), Y: 4 + 4*vg.Length(n.y)}
	p.Add(l, words)
	return nil
}
