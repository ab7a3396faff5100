package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed drawing.svg
var drawingText string

var drawingTemplate = template.Must(template.New("drawing").Parse(drawingText))

// A color is a CSS variable of colors.css, which gives it a value for the light and one for
// the dark scheme.
type color string

const (
	muted  color = "var(--muted)"
	line   color = "var(--line)"
	before color = "var(--before)"
	after  color = "var(--after)"
	strong color = "var(--ink)"
	paper  color = "var(--card)"
)

// Sizes in user units of the SVG; the page scales drawings to its width.
const (
	chartWidth  = 900
	textSize    = 11
	tickSize    = textSize - 1
	mostName    = 48 // characters of a name on an axis
	labelGap    = 8  // between an axis and its labels
	noteGap     = 4  // between a bar or line and its note
	slantDegree = 36 // of names below a horizontal axis
)

// A drawing is an SVG image: shapes in the order in which they are painted.
type drawing struct {
	Title         string // name of the image
	Description   string
	Width, Height number
	Elements      []element
}

// An element is a path, a circle or a text.
type element struct {
	Path         string
	Stroke       color
	StrokeWidth  number
	Dashed       bool
	Fill         color
	X, Y, Radius number // of a circle, which may have a stroke

	Text    string
	Full    string // unabbreviated Text, shown as a tooltip
	Size    number // of the font
	Anchor  string // start (""), middle or end
	Rotated string
}

// A number is written with two decimals at most.
type number float64

func (n number) String() string {
	return strconv.FormatFloat(math.Round(float64(n)*100)/100+0, 'f', -1, 64) // + 0 makes −0 a 0
}

// svg is the drawing as an element of a page.
func (d *drawing) svg() (template.HTML, error) {
	var b strings.Builder
	if err := drawingTemplate.Execute(&b, d); err != nil {
		return "", fmt.Errorf("report: drawing %q: %w", d.Title, err)
	}
	return template.HTML(strings.TrimSpace(b.String())), nil
}

func (d *drawing) rectangle(x0, y0, x1, y1 float64, fill color) {
	d.Elements = append(
		d.Elements,
		element{Path: path([]point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}) + "Z", Fill: fill},
	)
}

// rule draws a straight line of the grid.
func (d *drawing) rule(x0, y0, x1, y1 float64) {
	d.Elements = append(d.Elements, element{Path: path([]point{{x0, y0}, {x1, y1}}), Stroke: line, StrokeWidth: 0.7})
}

// text draws s with its baseline at y.
func (d *drawing) text(s string, x, y, size float64, anchor string, fill color) *element {
	d.Elements = append(
		d.Elements,
		element{Text: s, X: number(x), Y: number(y), Size: number(size), Anchor: anchor, Fill: fill},
	)
	return &d.Elements[len(d.Elements)-1]
}

// baseline is where a text of the given size is centered on y.
func baseline(y, size float64) float64 { return y + 0.35*size }

// A point is a position in a drawing or in the coordinates of a plot.
type point struct{ X, Y float64 }

// path is the data of a path along ps.
func path(ps []point) string {
	var b strings.Builder
	for i, p := range ps {
		command := byte('L')
		if i == 0 {
			command = 'M'
		}
		b.WriteByte(command)
		b.WriteString(number(p.X).String())
		b.WriteByte(' ')
		b.WriteString(number(p.Y).String())
	}
	return b.String()
}

// shorten keeps the start and the end of a long name, which distinguish layers.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	head := most / 3
	return string(r[:head]) + "…" + string(r[len(r)-(most-head-1):])
}
