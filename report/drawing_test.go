package report

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// A pictured is a path or a circle of an SVG image.
type pictured struct {
	points       []point
	fill, stroke string
}

// A label is a text of an SVG image.
type label struct {
	text   string
	at     point
	size   float64
	anchor string
	slant  bool
}

// An image is an SVG image as a reader sees it.
type image struct {
	width, height float64
	areas, lines  []pictured // filled ones, and others
	circles       []pictured
	labels        []label
}

func readImage(t *testing.T, svg template.HTML, err error) *image {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		ViewBox string `xml:"viewBox,attr"`
		Paths   []struct {
			D      string `xml:"d,attr"`
			Fill   string `xml:"fill,attr"`
			Stroke string `xml:"stroke,attr"`
		} `xml:"path"`
		Circles []struct {
			X    float64 `xml:"cx,attr"`
			Y    float64 `xml:"cy,attr"`
			Fill string  `xml:"fill,attr"`
		} `xml:"circle"`
		Texts []struct {
			X         float64 `xml:"x,attr"`
			Y         float64 `xml:"y,attr"`
			Size      float64 `xml:"font-size,attr"`
			Anchor    string  `xml:"text-anchor,attr"`
			Transform string  `xml:"transform,attr"`
			Text      string  `xml:",chardata"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(svg), &x); err != nil {
		t.Fatal(err)
	}
	m := &image{}
	if _, err := fmt.Sscanf(x.ViewBox, "0 0 %g %g", &m.width, &m.height); err != nil {
		t.Fatal(err)
	}
	for _, p := range x.Paths {
		s := pictured{fill: p.Fill, stroke: p.Stroke}
		for _, text := range strings.FieldsFunc(p.D, func(r rune) bool { return strings.ContainsRune("MLZ", r) }) {
			var q point
			if _, err := fmt.Sscan(text, &q.X, &q.Y); err != nil {
				t.Fatalf("path %q: %v", p.D, err)
			}
			s.points = append(s.points, q)
		}
		if p.Fill == "none" {
			m.lines = append(m.lines, s)
		} else {
			m.areas = append(m.areas, s)
		}
	}
	for _, c := range x.Circles {
		m.circles = append(m.circles, pictured{points: []point{{c.X, c.Y}}, fill: c.Fill})
	}
	for _, l := range x.Texts {
		m.labels = append(m.labels, label{l.Text, point{l.X, l.Y}, l.Size, l.Anchor, l.Transform != ""})
	}
	return m
}

// box is the estimated extent of a horizontal label.
func (l label) box() (from, to point) {
	w := textWidth(l.text, l.size)
	x := l.at.X
	switch l.anchor {
	case "middle":
		x -= w / 2
	case "end":
		x -= w
	}
	return point{x, l.at.Y - 0.7*l.size}, point{x + w, l.at.Y}
}

// legible checks that the horizontal labels are inside of the image and apart from one another, and that those of ticks
// below an axis are not on an area.
func (m *image) legible(t *testing.T) {
	t.Helper()
	for i, l := range m.labels {
		if l.slant {
			continue
		}
		from, to := l.box()
		if from.X < -0.02 || from.Y < -0.02 || to.X > m.width+0.02 || to.Y > m.height+0.02 {
			t.Errorf("%q from %v to %v is not inside of %v × %v", l.text, from, to, m.width, m.height)
		}
		for _, o := range m.labels[:i] {
			if at, end := o.box(); !o.slant && from.X < end.X && at.X < to.X && from.Y < end.Y && at.Y < to.Y {
				t.Errorf("%q and %q overlap", l.text, o.text)
			}
		}
		for _, a := range m.areas {
			low, high := bounds(a.points)
			if l.anchor == "middle" && from.X < high.X && low.X < to.X && from.Y < high.Y && low.Y < to.Y {
				t.Errorf("%q is on an area", l.text)
			}
		}
	}
}

func bounds(ps []point) (low, high point) {
	low, high = ps[0], ps[0]
	for _, p := range ps {
		low = point{min(low.X, p.X), min(low.Y, p.Y)}
		high = point{max(high.X, p.X), max(high.Y, p.Y)}
	}
	return low, high
}

// A scale converts a coordinate of an image to the quantity of an axis.
type scale struct{ at, value, perUnit float64 }

func (s scale) of(at float64) float64 { return s.value + (at-s.at)*s.perUnit }

// scaleOf is the scale that the labelled lines of the grid show: vertical lines for quantities along X, with labels
// centered below them, or horizontal lines with labels before them.
func (m *image) scaleOf(t *testing.T, vertical bool, value func(string) (float64, error)) scale {
	t.Helper()
	var at, values []float64
	for _, l := range m.lines {
		if l.stroke != string(line) || (l.points[0].X == l.points[1].X) != vertical {
			continue
		}
		for _, text := range m.labels {
			on, along := text.anchor == "end" && text.at.X < l.points[0].X &&
				math.Abs(text.at.Y-0.35*text.size-l.points[0].Y) < 0.02, l.points[0].Y
			if vertical {
				on, along = text.anchor == "middle" && math.Abs(text.at.X-l.points[0].X) < 0.02, l.points[0].X
			}
			if !on {
				continue
			}
			v, err := value(text.text)
			if err != nil {
				t.Fatal(err)
			}
			at, values = append(at, along), append(values, v)
		}
	}
	if len(at) < 2 {
		t.Fatalf("%d ticks of %v", len(at), m.labels)
	}
	last := len(at) - 1
	s := scale{at[0], values[0], (values[last] - values[0]) / (at[last] - at[0])}
	for i := range at {
		if s.differs(s.of(at[i]), values[i]) {
			t.Errorf("tick %g of %g is not on the line between the first and the last one", values[i], at[i])
		}
	}
	return s
}

// differs reports whether values are further apart than the rounding of coordinates to 0.01.
func (s scale) differs(a, b float64) bool { return math.Abs(a-b) > 0.04*math.Abs(s.perUnit) }

func bytesOfLabel(s string) (float64, error) {
	n, err := humanize.ParseBytes(s)
	return float64(n), err
}

// numberOfLabel is the number at the start of a label with a unit.
func numberOfLabel(s string) (float64, error) {
	return strconv.ParseFloat(strings.Fields(s)[0], 64)
}

// The bars of a chart, read from its ticks, are as long as the values.
func TestBarsAreToScale(t *testing.T) {
	changes := []Change{{5 << 10, 1 << 10}, {4 << 10, 0}, {100, 3 << 10}}
	c := sides([]string{"first", "second", "third"}, changes)
	svg, err := c.svg()
	m := readImage(t, svg, err)
	m.legible(t)
	s := m.scaleOf(t, true, bytesOfLabel)
	bars := map[string][]float64{}
	for _, a := range m.areas {
		low, high := bounds(a.points)
		if s.differs(s.of(low.X), 0) {
			t.Errorf("a bar begins at %g", s.of(low.X))
		}
		bars[a.fill] = append(bars[a.fill], s.of(high.X))
	}
	for i, change := range changes {
		if b := bars[string(before)][i]; s.differs(b, float64(change.Before)) {
			t.Errorf("bar of %d bytes before has %g", change.Before, b)
		}
		if a := bars[string(after)][i]; s.differs(a, float64(change.After)) {
			t.Errorf("bar of %d bytes after has %g", change.After, a)
		}
	}
}

// height is the extent of an area along Y at x.
func (p pictured) height(x float64) float64 {
	var ys []float64
	for i, a := range p.points {
		b := p.points[(i+1)%len(p.points)]
		if min(a.X, b.X) <= x && x < max(a.X, b.X) {
			ys = append(ys, a.Y+(b.Y-a.Y)*(x-a.X)/(b.X-a.X))
		}
	}
	slices.Sort(ys)
	sum := 0.0
	for i := 0; i+1 < len(ys); i += 2 {
		sum += ys[i+1] - ys[i]
	}
	return sum
}

// stepsOfImage are the X of the steps: names of nodes end at the middle of theirs.
func (m *image) stepsOfImage(steps []string) []float64 {
	var xs []float64
	for _, name := range steps {
		i := slices.IndexFunc(m.labels, func(l label) bool { return l.slant && l.text == name })
		if i >= 0 {
			xs = append(xs, m.labels[i].at.X)
		}
	}
	return xs
}

// planned is a run with blocks of several kinds and sizes, one of a byte and an empty one among them.
func planned(t *testing.T) *Memory {
	t.Helper()
	m := nodesOf(t, 6, 3, node)
	blocks := append(slices.Clone(m.Plan.Blocks),
		memory.Block{Name: "byte", Kind: memory.Activation, Bytes: 1, First: 0, Last: 5},
		memory.Block{Name: "none", Kind: memory.Activation, Bytes: 0, First: 0, Last: 5},
		memory.Block{Name: "gradient", Kind: memory.Gradient, Bytes: 300 << 10, First: 1, Last: 4})
	var err error
	if m.Plan, err = memory.Place(blocks); err != nil {
		t.Fatal(err)
	}
	return m
}

// The areas over a step, read from the ticks, are the bytes of the blocks that live then.
func TestAreasOverTimeAreLiveBytes(t *testing.T) {
	m := planned(t)
	timeline, err := m.timeline()
	if err != nil {
		t.Fatal(err)
	}
	svg, err := m.overTime(timeline)
	drawn := readImage(t, svg, err)
	drawn.legible(t)
	s, xs := drawn.scaleOf(t, false, bytesOfLabel), drawn.stepsOfImage(m.Steps)
	if len(xs) != len(m.Steps) {
		t.Fatalf("%d steps are labelled, want %d", len(xs), len(m.Steps))
	}
	for step, x := range xs {
		want := 0.0
		for _, b := range m.Held {
			want += float64(b.Bytes)
		}
		for _, b := range m.Plan.Blocks {
			if b.First <= step && step <= b.Last {
				want += float64(b.Bytes)
			}
		}
		pixels := 0.0
		for _, a := range drawn.areas {
			low, high := bounds(a.points)
			if low.Y < 0 || high.Y > drawn.height {
				t.Errorf("an area from %v to %v", low, high)
			}
			pixels += a.height(x)
		}
		if got := -pixels * s.perUnit; s.differs(got, want) {
			t.Errorf("step %d: %g bytes, want %g", step, got, want)
		}
	}
}

// Each block is drawn at its offset over the steps of its life.
func TestBlocksOfTheArenaAreAtTheirOffsets(t *testing.T) {
	m := planned(t)
	svg, err := m.arena()
	drawn := readImage(t, svg, err)
	drawn.legible(t)
	s, xs := drawn.scaleOf(t, false, bytesOfLabel), drawn.stepsOfImage(m.Steps)
	areas := drawn.areas
	for i, b := range m.Plan.Blocks {
		if b.Bytes == 0 {
			continue
		}
		if len(areas) == 0 {
			t.Fatalf("block %q is not drawn", b.Name)
		}
		low, high := bounds(areas[0].points)
		areas = areas[1:]
		offset, end := float64(m.Plan.Offsets[i]), float64(m.Plan.Offsets[i]+b.Bytes)
		if s.differs(s.of(high.Y), offset) || s.differs(s.of(low.Y), end) {
			t.Errorf("block %q from %g to %g, want %g to %g", b.Name, s.of(high.Y), s.of(low.Y), offset, end)
		}
		for step, x := range xs {
			if live := b.First <= step && step <= b.Last; live != (low.X < x && x < high.X) {
				t.Errorf("block %q at step %d: live is %v", b.Name, step, live)
			}
		}
	}
	if len(areas) != 0 {
		t.Errorf("%d areas without a block", len(areas))
	}
}

// Step 2,000 is the one that ends at 2000.
func TestNumbersOfStepsAreAtTheirMiddle(t *testing.T) {
	for _, tick := range stepTicks("step", 5000) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimPrefix(tick.label, "step "), ",", ""), 64)
		if err != nil || tick.at != n-0.5 {
			t.Errorf("%q is at %g", tick.label, tick.at)
		}
	}
}

// The dots of curves, read from the ticks, are at the values.
func TestDotsAreAtTheirValues(t *testing.T) {
	var layers []verification.Layer
	sqnrs := []float64{40, 31.5, 58, 3}
	for i := range sqnrs {
		layers = append(layers, verification.Layer{Value: node(i), Errors: verification.Errors{Elements: 1, SQNR: &sqnrs[i]}})
	}
	trained := pass.Training{Steps: 30, Loss: []pass.Point{{Step: 1, Y: 2.5}, {Step: 30, Y: 0.5}},
		ValidationLoss: []pass.Point{{Step: 10, Y: 1.25}, {Step: 30, Y: 0.75}}}
	var trials []pass.Trial
	for i := range sqnrs {
		trials = append(trials, pass.Trial{Bytes: int64(1000 * (i + 2)), SQNR: &sqnrs[i]})
	}
	byLayer, err := sqnrByLayer(&verification.Result{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	loss, err := lossCurve(trained)
	if err != nil {
		t.Fatal(err)
	}
	front, _, err := paretoChart(&pass.Search{Trials: trials, Chosen: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		f    figure
		want []float64
	}{
		{"SQNR by layer", byLayer, sqnrs},
		{"loss", loss, []float64{1.25, 0.75}},
		{"trials", front, sqnrs},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := readImage(t, c.f.SVG, nil)
			m.legible(t)
			s := m.scaleOf(t, false, numberOfLabel)
			for i, want := range c.want {
				if got := s.of(m.circles[i].points[0].Y); s.differs(got, want) {
					t.Errorf("dot %d is at %g, want %g", i, got, want)
				}
			}
		})
	}
}

// A short form of a name has the required length; all of it are the ends of the name.
func TestShortFormsOfNames(t *testing.T) {
	const name = "modèle.encoder.block.17.query.weight"
	n := len([]rune(name))
	for most := 3; most <= n+1; most++ {
		got := shorten(name, most)
		head, tail, cut := strings.Cut(got, "…")
		if !strings.HasPrefix(name, head) || !strings.HasSuffix(name, tail) || cut != (most < n) ||
			len([]rune(got)) != min(most, n) {
			t.Errorf("in %d characters: %q", most, got)
		}
	}
}
