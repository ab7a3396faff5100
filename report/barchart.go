package report

import "html/template"

// A barChart is horizontal bars, one group a label, from the top down.
type barChart struct {
	caption
	labels []string
	series []series
	ticks  func(lo, hi float64) []tick
}

// A series is one bar of each group: values, and the notes after their ends.
type series struct {
	color  color
	values []float64
	notes  []string
}

const (
	barHeight  = 9
	groupGap   = 11
	noteSize   = textSize - 2
	axisHeight = 34
)

// svg draws c.
func (c barChart) svg() (template.HTML, error) {
	group := float64(barHeight * len(c.series))
	bottom := float64(len(c.labels)) * (group + groupGap)
	d := &drawing{Title: c.title, Description: c.description, Width: chartWidth, Height: number(bottom + axisHeight)}
	names := c.names()
	left := widest(names, textSize) + labelGap
	scale := c.scale(left)
	c.axis(d, left, bottom, scale)
	for i, name := range names {
		top := groupGap/2 + float64(i)*(group+groupGap)
		d.text(name.label, left-labelGap, baseline(top+group/2, textSize), textSize, "end", muted).Full = name.full
		for k, s := range c.series {
			y := top + float64(k*barHeight)
			end := left + max(0, s.values[i])*scale
			d.rectangle(left, y, end, y+barHeight-1, s.color)
			d.text(s.notes[i], end+noteGap, baseline(y+(barHeight-1)/2, noteSize), noteSize, "", muted)
		}
	}
	return d.svg()
}

// names are the labels as far as they fit.
func (c barChart) names() []tick {
	ts := make([]tick, len(c.labels))
	for i, l := range c.labels {
		ts[i] = named(l, mostName)
	}
	return ts
}

// named is the label of a name, shortened to so many characters.
func named(name string, most int) tick {
	t := tick{label: shorten(visible(name), most)}
	if t.label != visible(name) {
		t.full = visible(name)
	}
	return t
}

// scale is the length of a unit, such that each bar and its note fit.
func (c barChart) scale(left float64) float64 {
	scale, any := 0.0, false
	for _, s := range c.series {
		for i, v := range s.values {
			if v <= 0 {
				continue
			}
			space := (chartWidth - left - noteGap - textWidth(s.notes[i], noteSize)) / v
			if !any || space < scale {
				scale, any = space, true
			}
		}
	}
	if !any {
		return chartWidth - left
	}
	return scale
}

// axis draws the grid and the labels of the ticks, as far as they fit.
func (c barChart) axis(d *drawing, left, bottom, scale float64) {
	for _, t := range c.ticks(0, (chartWidth-left)/scale) {
		x := left + t.at*scale
		d.rule(x, 0, x, bottom)
		if half := textWidth(t.label, tickSize) / 2; x+half <= chartWidth {
			d.text(t.label, x, bottom+axisHeight/2+4, tickSize, "middle", muted)
		}
	}
}
