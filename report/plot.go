package report

import (
	"fmt"
	"html/template"
	"math"
)

// A plot is a chart over two axes: a grid, and layers in the order in which they are painted.
type plot struct {
	caption
	width  float64 // chartWidth where it is 0
	height float64
	x, y   axis
	layers []layer
}

// An axis is a range of numbers with labels.
type axis struct {
	name     string // quantity; "" where the labels of the ticks say it
	min, max float64
	ticks    []tick
	slanted  bool // labels are names, drawn at an angle
}

// A layer is a polygon, a line, dots or a note, in the coordinates of the plot.
type layer struct {
	points       []point
	fill, stroke color // of a polygon, of a line; none where empty
	width        float64
	radius       float64 // of dots
	dashed       bool
	text         *note
	marks        []mark // of a scatter plot
}

// A note is text next to the first point of a layer.
type note struct {
	label    tick
	leftward bool // it ends at the point
	downward bool // it is below the point
}

func (p *plot) polygon(points []point, fill, edge color) {
	p.layers = append(p.layers, layer{points: points, fill: fill, stroke: edge, width: 0.5})
}

func (p *plot) line(points []point, stroke color) {
	p.layers = append(p.layers, layer{points: points, stroke: stroke, width: 1.2})
}

func (p *plot) dots(points []point, fill color, radius float64) {
	p.layers = append(p.layers, layer{points: points, fill: fill, radius: radius})
}

// mark draws a dashed line from the first point and a note there.
func (p *plot) mark(from, to point, n note) {
	p.layers = append(p.layers, layer{points: []point{from, to}, stroke: strong, width: 0.9, dashed: true, text: &n})
}

// A frame is the area of a drawing that shows the ranges of the axes.
type frame struct {
	left, top, right, bottom float64
	x, y                     axis
}

func (f frame) at(p point) point {
	return point{
		f.left + (p.X-f.x.min)/(f.x.max-f.x.min)*(f.right-f.left),
		f.bottom - (p.Y-f.y.min)/(f.y.max-f.y.min)*(f.bottom-f.top),
	}
}

func (p *plot) across() float64 {
	if p.width == 0 {
		return chartWidth
	}
	return p.width
}

// frame leaves space for the labels and the titles of both axes.
func (p *plot) frame() frame {
	f := frame{
		left:   widest(p.y.ticks, tickSize) + labelGap,
		top:    6,
		right:  p.across() - 4,
		bottom: p.height - tickSize - labelGap - 4,
		x:      p.x,
		y:      p.y,
	}
	if p.y.name != "" {
		f.left += textSize + labelGap
	}
	if p.x.slanted {
		angle := slantDegree * math.Pi / 180
		f.bottom = p.height - widest(p.x.ticks, tickSize)*math.Sin(angle) - tickSize - labelGap
		for _, t := range p.x.ticks {
			// Its label ends at the tick and must start within the drawing.
			part := (t.at - p.x.min) / (p.x.max - p.x.min)
			f.left = max(f.left, (textWidth(t.label, tickSize)*math.Cos(angle)-part*f.right)/(1-part))
		}
	}
	if p.x.name != "" {
		f.bottom -= textSize + labelGap
	}
	return f
}

// svg draws p.
func (p *plot) svg() (template.HTML, error) {
	d := &drawing{Title: p.title, Description: p.description, Width: number(p.across()), Height: number(p.height)}
	f := p.frame()
	f.grid(d)
	for _, l := range p.layers {
		l.draw(d, f)
	}
	return d.svg()
}

// grid draws horizontal lines and the labels of both axes.
func (f frame) grid(d *drawing) {
	for _, t := range f.y.ticks {
		y := f.at(point{f.x.min, t.at}).Y
		d.rule(f.left, y, f.right, y)
		d.text(t.label, f.left-labelGap, baseline(y, tickSize), tickSize, "end", muted)
	}
	if f.y.name != "" {
		x, y := float64(textSize), (f.top+f.bottom)/2
		d.text(f.y.name, x, y, textSize, "middle", muted).Rotated = rotated(-90, x, y)
	}
	if f.x.name != "" {
		d.text(f.x.name, (f.left+f.right)/2, float64(d.Height)-noteGap, textSize, "middle", muted)
	}
	for _, t := range f.x.ticks {
		x, y := f.at(point{t.at, 0}).X, f.bottom+labelGap+tickSize/2
		if f.x.slanted {
			s := d.text(t.label, x, y, tickSize, "end", muted)
			s.Full, s.Rotated = t.full, rotated(-slantDegree, x, y)
			continue
		}
		half := textWidth(t.label, tickSize) / 2
		d.text(t.label, min(x, float64(d.Width)-half), y+4, tickSize, "middle", muted)
	}
}

// rotated turns a text around its position.
func rotated(degrees, x, y float64) string {
	return fmt.Sprintf("rotate(%s %s %s)", number(degrees), number(x), number(y))
}

func (l layer) draw(d *drawing, f frame) {
	points := make([]point, len(l.points))
	for i, p := range l.points {
		points[i] = f.at(p)
	}
	switch {
	case l.marks != nil:
		d.scatter(f, l.marks)
		return
	case l.radius > 0:
		for _, p := range points {
			d.Elements = append(
				d.Elements,
				element{X: number(p.X), Y: number(p.Y), Radius: number(l.radius), Fill: l.fill},
			)
		}
		return
	case l.fill != "":
		d.Elements = append(
			d.Elements,
			element{Path: path(points) + "Z", Fill: l.fill, Stroke: l.stroke, StrokeWidth: number(l.width)},
		)
		return
	}
	d.Elements = append(
		d.Elements,
		element{Path: path(points), Stroke: l.stroke, StrokeWidth: number(l.width), Dashed: l.dashed},
	)
	if l.text != nil {
		l.text.draw(d, points[0])
	}
}

func (n *note) draw(d *drawing, at point) {
	x, y, anchor := at.X+noteGap, at.Y-noteGap, ""
	if n.leftward {
		x, anchor = at.X-noteGap, "end"
	}
	if n.downward {
		y = at.Y + tickSize
	}
	d.text(n.label.label, x, y, tickSize, anchor, strong).Full = n.label.full
}
