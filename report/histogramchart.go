package report

import (
	"html/template"
	"math"
)

const (
	histogramWidth  = 440
	histogramHeight = 220
)

// A histogramView is the histograms of a weight as a page shows them.
type histogramView struct {
	Name          string
	Values, Error template.HTML
}

// histogramViews draws the histograms.
func histogramViews(hs []WeightHistogram) ([]histogramView, error) {
	var views []histogramView
	for _, h := range hs {
		v := histogramView{Name: visible(Weight{Tensor: h.Tensor, Module: h.Module}.named())}
		values := histogramPlot(
			caption{"Values of " + v.Name, "Elements by value: gray area before, blue line after."},
			"value",
			"elements",
			h.Before,
			h.After,
		)
		values.area(h.Before, before)
		values.line(h.After.outline(), after)
		errors := histogramPlot(
			caption{"Error of " + v.Name, "Elements by error, which is the value after minus the value before."},
			"error",
			"elements",
			h.Error,
		)
		errors.area(h.Error, after)
		var err error
		if v.Values, err = values.svg(); err != nil {
			return nil, err
		}
		if v.Error, err = errors.svg(); err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// logarithm is the height of a bar: outliers, which are few, set the scale of a quantized weight.
func logarithm(n int64) float64 { return math.Log10(1 + float64(n)) }

// histogramPlot has the axes of histograms: a quantity, and the number of things that have it.
func histogramPlot(c caption, quantity, things string, hs ...Histogram) *plot {
	p := &plot{
		caption: c,
		width:   histogramWidth,
		height:  histogramHeight,
		x:       axis{name: quantity},
		y:       axis{name: things},
	}
	p.x.min, p.x.max = hs[0].Start, hs[0].end()
	for _, h := range hs {
		p.x.min, p.x.max = min(p.x.min, h.Start), max(p.x.max, h.end())
		for _, n := range h.Counts {
			p.y.max = max(p.y.max, 1.05*logarithm(n))
		}
	}
	p.y.max = max(p.y.max, 1)
	p.x.ticks = numberTicks(p.x.min, p.x.max)
	p.y.ticks = []tick{{label: "0"}}
	for n := int64(1); logarithm(n) < p.y.max; n *= 10 {
		p.y.ticks = append(p.y.ticks, tick{at: logarithm(n), label: count(n)})
	}
	return p
}

func (h Histogram) end() float64 { return h.Start + float64(len(h.Counts))*h.Width }

// outline is the upper edge of the bars, from zero to zero.
func (h Histogram) outline() []point {
	line := []point{{h.Start, 0}}
	for i, n := range h.Counts {
		x := h.Start + float64(i)*h.Width
		line = append(line, point{x, logarithm(n)}, point{x + h.Width, logarithm(n)})
	}
	return append(line, point{h.end(), 0})
}

func (p *plot) area(h Histogram, fill color) { p.polygon(h.outline(), fill, "") }
