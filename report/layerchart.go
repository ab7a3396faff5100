package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mcompress/mcompress/internal/verify"
)

const (
	layerHeight = 320
	mostDots    = 300 // layers up to which each is a dot on the line
)

// byDepth draws the SQNR of the layers in the order in which they run. Where a layer is exact, the
// line has a gap.
func byDepth(v *verify.Result) (figure, error) {
	if v == nil || len(worstLayers(v.Layers)) == 0 {
		return figure{}, nil
	}
	f := figure{Title: "Error by layer", Note: "Signal to noise of each value inside the graph, in the order of the nodes; more is better. Gaps are layers that are exact."}
	p := depthPlot(v.Layers)
	for _, part := range stretches(v.Layers) {
		if err := addLine(p, part, len(v.Layers) <= mostDots); err != nil {
			return f, err
		}
		for _, at := range part {
			p.Y.Max = max(p.Y.Max, at.Y)
		}
	}
	p.Y.Max = math.Max(1, p.Y.Max*1.12)
	if err := markBreak(p, v); err != nil {
		return f, err
	}
	var err error
	f.SVG, err = drawn(p, f.Title, layerHeight)
	return f, err
}

// depthPlot has the axes and nothing in them.
func depthPlot(ls []verify.Layer) *plot.Plot {
	p := framed()
	p.X.Min, p.X.Max = 0, float64(len(ls))
	p.Y.Min, p.Y.Max = 0, 1
	p.Y.Tick.Marker = decibelTicks{}
	var ticks plot.ConstantTicks
	if len(ls) <= mostNamed {
		p.X.Tick.Label.Rotation = math.Pi / 5
		p.X.Tick.Label.XAlign = draw.XRight
		for i, l := range ls {
			ticks = append(ticks, plot.Tick{Value: float64(i) + 0.5, Label: shorten(visible(l.Value), 22)})
		}
	} else {
		for _, t := range marks(float64(len(ls)), 1, func(v float64) string { return fmt.Sprintf("layer %g", v) }) {
			if t.Value > 0 {
				ticks = append(ticks, plot.Tick{Value: t.Value - 0.5, Label: t.Label})
			}
		}
	}
	p.X.Tick.Marker = ticks
	return p
}

// framed is a plot with horizontal lines and words at its axes, and nothing in it.
func framed() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal = draw.LineStyle{Color: line, Width: 0.7}
	p.Add(g)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Width, a.Tick.LineStyle.Width, a.Tick.Length, a.Padding = 0, 0, 0, 0
		a.Tick.Label = style(textSize - 1)
	}
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XCenter, draw.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter
	return p
}

// stretches are the runs of neighbouring layers that have a number. What is noise alone is at 0.
func stretches(ls []verify.Layer) []plotter.XYs {
	var parts []plotter.XYs
	open := false
	for i, l := range ls {
		db := l.Errors.DB()
		if math.IsInf(db, 1) || math.IsNaN(db) {
			open = false
			continue
		}
		if !open {
			parts, open = append(parts, nil), true
		}
		last := &parts[len(parts)-1]
		*last = append(*last, plotter.XY{X: float64(i) + 0.5, Y: max(0, db)})
	}
	return parts
}

func addLine(p *plot.Plot, points plotter.XYs, dots bool) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("report: layers: %w", err)
	}
	l.LineStyle = draw.LineStyle{Color: after, Width: 1.2}
	p.Add(l)
	if !dots && len(points) > 1 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return fmt.Errorf("report: layers: %w", err)
	}
	s.GlyphStyle = draw.GlyphStyle{Color: after, Radius: 2, Shape: draw.CircleGlyph{}}
	p.Add(s)
	return nil
}

// markBreak draws a line at the layer that most of the error comes from.
func markBreak(p *plot.Plot, v *verify.Result) error {
	for i, l := range v.Layers {
		if v.Breaks == nil || l.Value != v.Breaks.Value {
			continue
		}
		x := float64(i) + 0.5
		n := note{shorten(visible(l.Value), 40), plotter.XY{X: x, Y: p.Y.Max}, draw.XLeft, draw.YTop}
		if i > len(v.Layers)/2 {
			n.x = draw.XRight
		}
		return mark(p, plotter.XYs{{X: x, Y: 0}, {X: x, Y: p.Y.Max}}, n)
	}
	return nil
}
