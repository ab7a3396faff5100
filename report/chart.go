package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/mcompress/mcompress/internal/memory"
)

// Drawn colours are stand-ins: the page's style sheet says what they are in light and
// in dark.
var (
	ink    = color.NRGBA{1, 1, 1, 255}
	line   = color.NRGBA{2, 2, 2, 255}
	before = color.NRGBA{3, 3, 3, 255}
	after  = color.NRGBA{4, 4, 4, 255}
	strong = color.NRGBA{5, 5, 5, 255}
	paper  = color.NRGBA{6, 6, 6, 255}
	byKind = [...]color.Color{
		memory.Weight:     color.NRGBA{7, 7, 7, 255},
		memory.State:      color.NRGBA{8, 8, 8, 255},
		memory.Gradient:   color.NRGBA{9, 9, 9, 255},
		memory.Activation: color.NRGBA{16, 16, 16, 255},
		memory.Scratch:    color.NRGBA{17, 17, 17, 255},
	}
)

var themed = strings.NewReplacer(
	"#010101", "var(--muted)", "#020202", "var(--line)", "#030303", "var(--before)", "#040404", "var(--after)",
	"#050505", "var(--ink)", "#060606", "var(--card)", "#070707", "var(--weight)", "#080808", "var(--state)",
	"#090909", "var(--gradient)", "#101010", "var(--activation)", "#111111", "var(--scratch)",
)

// A chart is horizontal bars, one group a label, from the top down.
type chart struct {
	title  string // for those who cannot see it
	labels []string
	series []series
	ticks  plot.Ticker
}

// A series is one bar of each group: values, and what is written at their ends.
type series struct {
	color  color.Color
	values []float64
	notes  []string
}

// Sizes in points; the page scales charts to its width.
const (
	chartWidth = 900
	barHeight  = 9
	groupGap   = 11
	textSize   = 11
	axisHeight = 34
)

// svg draws c by gonum/plot.
func (c chart) svg() (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = nil
	p.Add(grid())
	group := vg.Length(barHeight * len(c.series))
	for i, s := range c.series {
		// gonum counts upwards, a list reads downwards.
		offset := group/2 - barHeight/2 - vg.Length(i*barHeight)
		if err := c.add(p, s, offset); err != nil {
			return "", err
		}
	}
	c.axes(p)
	height := vg.Length(len(c.labels))*(group+groupGap) + axisHeight
	return drawn(p, c.title, height)
}

// drawn is p as part of a page.
func drawn(p *plot.Plot, title string, height vg.Length) (template.HTML, error) {
	canvas := vgsvg.New(chartWidth, height)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	return inline(b.String(), title), nil
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Width = 0
	g.Vertical = draw.LineStyle{Color: line, Width: 0.7}
	return g
}

func (c chart) add(p *plot.Plot, s series, offset vg.Length) error {
	n := len(s.values)
	values := make(plotter.Values, n)
	ends := plotter.XYLabels{XYs: make(plotter.XYs, n), Labels: make([]string, n)}
	for i, v := range s.values {
		values[n-1-i] = v
		ends.XYs[n-1-i] = plotter.XY{X: v, Y: float64(n - 1 - i)}
		ends.Labels[n-1-i] = s.notes[i]
	}
	bars, err := plotter.NewBarChart(values, barHeight-1)
	if err != nil {
		return fmt.Errorf("report: chart: %w", err)
	}
	bars.Horizontal, bars.Offset, bars.Color, bars.LineStyle.Width = true, offset, s.color, 0
	notes, err := plotter.NewLabels(ends)
	if err != nil {
		return fmt.Errorf("report: chart: %w", err)
	}
	notes.Offset = vg.Point{X: 4, Y: offset}
	for i := range notes.TextStyle {
		notes.TextStyle[i] = style(textSize - 2)
		notes.TextStyle[i].YAlign = draw.YCenter
	}
	p.Add(bars, notes)
	return nil
}

func (c chart) axes(p *plot.Plot) {
	names := make([]string, len(c.labels))
	for i, l := range c.labels {
		names[len(names)-1-i] = shorten(visible(l), 48)
	}
	p.NominalY(names...)
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width, p.Y.Tick.Length = 0, 0, 0
	p.Y.Padding = 2
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	p.Y.Tick.Label = style(textSize)
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter
	p.X.LineStyle.Width, p.X.Tick.LineStyle.Width, p.X.Tick.Length = 0, 0, 0
	p.X.Tick.Label = style(textSize - 1)
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XCenter, draw.YTop
	p.X.Tick.Marker = c.ticks
	p.X.Min = 0
	p.X.Max *= 1.02
	if p.X.Max <= 0 {
		p.X.Max = 1
	}
}

func style(size float64) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, font.Length(size)),
		Handler: plot.DefaultTextHandler,
	}
}

var (
	opening = regexp.MustCompile(`(?s)^.*?<svg [^>]*viewBox="([^"]*)"[^>]*>`)
	family  = regexp.MustCompile(`font-family:[^;]*;font-variant:[^;]*;font-weight:[^;]*;font-style:[^;]*;`)
)

// inline makes a drawing part of a page: no header, no name spaces, the page's fonts
// and colours.
func inline(svg, title string) template.HTML {
	head := fmt.Sprintf(`<svg viewBox="$1" role="img" aria-label="%s">`, template.HTMLEscapeString(title))
	svg = opening.ReplaceAllString(svg, head)
	return template.HTML(themed.Replace(family.ReplaceAllString(svg, "")))
}

// shorten leaves the ends of a long name, which tell layers apart.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	head := most / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}

// byteTicks marks bytes at round numbers of one unit.
type byteTicks struct{}

func (byteTicks) Ticks(_, most float64) []plot.Tick {
	unit := 1.0
	for most/unit >= 1024 {
		unit *= 1024
	}
	return marks(most, unit, func(v float64) string { return size(int64(v)) })
}

// decibelTicks marks decibels.
type decibelTicks struct{}

func (decibelTicks) Ticks(_, most float64) []plot.Tick {
	return marks(most, 1, func(v float64) string { return fmt.Sprintf("%g dB", v) })
}

// marks are three to six multiples of 1, 2 or 5 and a power of ten, in units.
func marks(most, unit float64, show func(float64) string) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(most/unit/2)))
	for _, k := range []float64{5, 2} {
		if step*k*2 <= most/unit {
			step *= k
			break
		}
	}
	if unit == 1 {
		step = max(step, 1)
	}
	var ts []plot.Tick
	for v := 0.0; v*unit <= most; v += step {
		ts = append(ts, plot.Tick{Value: v * unit, Label: show(v * unit)})
	}
	return ts
}
