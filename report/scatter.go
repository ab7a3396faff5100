package report

import "html/template"

// A mark is a point of a scatter plot of file size and quality, with its label.
type mark struct {
	at          point
	label, full string
	front       bool // on the Pareto front
	chosen      bool
}

const (
	markRadius = 4.5
	markGap    = 8 // between the center of a mark and its label
)

// paretoPlot draws marks by file size and quality and the Pareto front, which it sets in them. It has no drawing for
// fewer than two.
func paretoPlot(f figure, quality string, ticksOf func(lo, hi float64) []tick, ms []mark) (template.HTML, error) {
	if len(ms) < 2 {
		return "", nil
	}
	p := plot{caption: f.caption(), height: curveHeight, x: axis{name: "file size"}, y: axis{name: quality}}
	var all []point
	lo, hi, left := ms[0].at.Y, ms[0].at.Y, ms[0].at.X
	for _, m := range ms {
		all = append(all, m.at)
		lo, hi, left, p.x.max = min(lo, m.at.Y), max(hi, m.at.Y), min(left, m.at.X), max(p.x.max, m.at.X)
	}
	p.x.min, p.x.max = max(0, left-0.08*p.x.max), 1.08*p.x.max
	margin := max(0.08*(hi-lo), 0.1)
	p.y.min, p.y.max = lo-margin, hi+margin
	p.x.ticks, p.y.ticks = byteTicks(p.x.min, p.x.max), ticksOf(p.y.min, p.y.max)
	front := pareto(all)
	for i, m := range ms {
		for _, q := range front {
			ms[i].front = ms[i].front || q == m.at
		}
	}
	p.line(front, after)
	p.layers = append(p.layers, layer{marks: ms})
	return p.svg()
}

// A box is the area of a mark or of a label.
type box struct{ left, top, right, bottom float64 }

func (a box) overlaps(b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// scatter draws marks: full ones on the Pareto front, hollow others, a ring around the chosen one. Each has its label
// on the first side that is free.
func (d *drawing) scatter(f frame, ms []mark) {
	var taken []box
	for _, m := range ms {
		p := f.at(m.at)
		taken = append(taken, box{p.X - markRadius, p.Y - markRadius, p.X + markRadius, p.Y + markRadius})
		e := element{
			X:           number(p.X),
			Y:           number(p.Y),
			Radius:      markRadius,
			Fill:        paper,
			Stroke:      muted,
			StrokeWidth: 1.5,
			Full:        m.full,
		}
		if m.front {
			e.Fill, e.Stroke = after, after
		}
		d.Elements = append(d.Elements, e)
	}
	for _, m := range ms {
		p, width := f.at(m.at), textWidth(m.label, textSize)
		gap := float64(markGap)
		if m.chosen {
			gap += 4
			d.Elements = append(
				d.Elements,
				element{
					X:           number(p.X),
					Y:           number(p.Y),
					Radius:      markRadius + 4,
					Fill:        "none",
					Stroke:      strong,
					StrokeWidth: 1.5,
				},
			)
		}
		sides := []struct {
			center point
			anchor string
			x      float64
		}{
			{point{p.X + gap + width/2, p.Y}, "", p.X + gap},
			{point{p.X - gap - width/2, p.Y}, "end", p.X - gap},
			{point{p.X, p.Y - gap - textSize/2}, "middle", p.X},
			{point{p.X, p.Y + gap + textSize/2}, "middle", p.X},
		}
		best := sides[0]
		for _, s := range sides {
			b := box{s.center.X - width/2, s.center.Y - textSize/2, s.center.X + width/2, s.center.Y + textSize/2}
			free := b.left >= 0 && b.right <= float64(d.Width)
			for _, t := range taken {
				free = free && !b.overlaps(t)
			}
			if free {
				best = s
				break
			}
		}
		taken = append(
			taken,
			box{
				best.center.X - width/2,
				best.center.Y - textSize/2,
				best.center.X + width/2,
				best.center.Y + textSize/2,
			},
		)
		d.text(m.label, best.x, baseline(best.center.Y, textSize), textSize, best.anchor, strong).Full = m.full
	}
}
