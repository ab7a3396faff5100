package report

import (
	"math"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

const (
	layerHeight = 320
	maxDots     = 300 // layers up to which each is a dot on the line
	maxNamed    = 36  // steps up to which an axis names the nodes
	maxNodeName = 22  // characters of such a name
)

// sqnrByLayer draws the SQNR of the layers in the order of execution. Exact layers are gaps in the line.
func sqnrByLayer(v *verification.Result) (figure, error) {
	if v == nil || len(worstLayers(v.Layers)) == 0 {
		return figure{}, nil
	}
	f := figure{
		Title: "SQNR by layer",
		Note: "Signal-to-noise ratio of each value inside the graph, in the order of execution; higher is better. Exact " +
			"layers are gaps in the line.",
	}
	p := plot{caption: f.caption(), height: layerHeight, x: layerAxis(v.Layers), y: axis{name: "SQNR"}}
	for _, part := range inexact(v.Layers) {
		p.line(part, after)
		if len(v.Layers) <= maxDots || len(part) == 1 {
			p.dots(part, after, 2)
		}
		for _, at := range part {
			p.y.max = max(p.y.max, at.Y)
		}
	}
	p.y.max = max(1, p.y.max*1.12)
	p.y.ticks = decibelTicks(0, p.y.max)
	markBreak(&p, v)
	var err error
	f.SVG, err = p.svg()
	return f, err
}

// layerAxis names the layers where they are few and numbers them otherwise.
func layerAxis(ls []verification.Layer) axis {
	a := axis{max: float64(len(ls))}
	if len(ls) > maxNamed {
		a.ticks = stepTicks("layer", len(ls))
		return a
	}
	a.slanted = true
	for i, l := range ls {
		t := named(l.Value, maxNodeName)
		t.at = float64(i) + 0.5
		a.ticks = append(a.ticks, t)
	}
	return a
}

// inexact are the runs of neighboring layers that have an SQNR. A negative one is drawn as 0.
func inexact(ls []verification.Layer) [][]point {
	var parts [][]point
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
		*last = append(*last, point{float64(i) + 0.5, max(0, db)})
	}
	return parts
}

// markBreak marks the layer that most of the error comes from.
func markBreak(p *plot, v *verification.Result) {
	for i, l := range v.Layers {
		if v.Breaks == nil || l.Value != v.Breaks.Value {
			continue
		}
		x := float64(i) + 0.5
		p.mark(
			point{x, p.y.max},
			point{x, 0},
			note{label: named(pass.Named(l.Value, l.Module), 60), downward: true, leftward: i > len(v.Layers)/2},
		)
		return
	}
}
