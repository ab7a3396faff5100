package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mcompress/mcompress/pass"
)

// A searched is what pages show of a search.
type searched struct {
	pass.Search
	Told  string
	Front figure
}

// searched draws the trials of the search; nil if there was none.
func (r *Report) searched() (*searched, error) {
	if r.Search == nil {
		return nil, nil
	}
	f, err := front(r.Search)
	return &searched{*r.Search, found(r.Search), f}, err
}

// found is a search in a sentence or two.
func found(s *pass.Search) string {
	text := fmt.Sprintf("%s weights, each stored in several ways and run on %s samples", count(int64(len(s.Layers))), count(int64(s.Samples)))
	if len(s.Trials) == 0 {
		return text + "."
	}
	t := s.Trials[s.Chosen]
	text += fmt.Sprintf("; %s combinations run on all of them. Taken: %s bytes", count(int64(len(s.Trials))), count(t.Bytes))
	if t.SQNR != nil {
		text += fmt.Sprintf(", %.1f dB", *t.SQNR)
	}
	if t.Drop != nil {
		text += fmt.Sprintf(", accuracy %+.2f points", 0-100**t.Drop)
	}
	return text + "."
}

// damageOf is what a trial costs, in the unit of the plot: points of accuracy where they are known, else decibels of error below the signal.
func damageOf(t pass.Trial) (float64, bool) {
	switch {
	case t.Drop != nil:
		return 100 * *t.Drop, true
	case t.SQNR != nil:
		return -*t.SQNR, true
	}
	return 0, false
}

// front draws size against error of all trials, and the line of those that no other beats in both.
func front(s *pass.Search) (figure, error) {
	f := figure{Title: "Size against error", Note: "Each dot is a combination that was run; on the line none is both smaller and nearer to the source."}
	var all plotter.XYs
	for _, t := range s.Trials {
		if y, ok := damageOf(t); ok {
			all = append(all, plotter.XY{X: float64(t.Bytes), Y: y})
		}
	}
	if len(all) < 2 {
		return f, nil
	}
	p := framed()
	if err := addDots(p, all, false); err != nil {
		return f, err
	}
	if err := addLine(p, pareto(all), false); err != nil {
		return f, err
	}
	lo, hi := all[0].Y, all[0].Y
	most := 0.0
	for _, q := range all {
		lo, hi, most = math.Min(lo, q.Y), math.Max(hi, q.Y), math.Max(most, q.X)
	}
	room := math.Max(0.08*(hi-lo), 0.1)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.08*most, lo-room, hi+room
	p.X.Tick.Marker = plot.ConstantTicks(marks(1.08*most, 1024, func(v float64) string { return size(int64(v)) }))
	unit := func(v float64) string { return fmt.Sprintf("%.2g points", v) }
	if s.Trials[0].Drop == nil {
		unit = func(v float64) string { return fmt.Sprintf("%.0f dB", -v) }
	}
	var ticks []plot.Tick
	for i := range 5 {
		v := lo + (hi-lo)*float64(i)/4
		ticks = append(ticks, plot.Tick{Value: v, Label: unit(v)})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	if err := markTaken(p, s.Trials[s.Chosen]); err != nil {
		return f, err
	}
	var err error
	f.SVG, err = drawn(p, f.Title, curveHeight)
	return f, err
}

// markTaken draws a line at the size of the trial that was taken.
func markTaken(p *plot.Plot, t pass.Trial) error {
	x := float64(t.Bytes)
	n := note{"taken: " + size(t.Bytes), plotter.XY{X: x, Y: p.Y.Max}, draw.XLeft, draw.YTop}
	if x > p.X.Max/2 {
		n.x = draw.XRight
	}
	return mark(p, plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}}, n)
}

// pareto are the points that no other is below in both.
func pareto(all plotter.XYs) plotter.XYs {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b plotter.XY) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	var line plotter.XYs
	for _, q := range sorted {
		if len(line) == 0 || q.Y < line[len(line)-1].Y {
			line = append(line, q)
		}
	}
	return line
}

// Harm is a damage in the unit of its measure.
func (s searched) Harm(v pass.Variant) string { return Harm(s.Measure, v.Damage) }

// Taken is what became of a layer.
func (s searched) Taken(l pass.Sensitivity) string { return cmp.Or(l.Method, "as it was") }

// Harm is a damage as text: decibels for noise, nats for divergences.
func Harm(measure string, damage float64) string {
	switch {
	case damage == 0:
		return "none"
	case measure == "noise":
		return fmt.Sprintf("%.1f dB", -10*math.Log10(damage))
	}
	return fmt.Sprintf("%.2g nats", damage)
}

// search writes how methods were chosen.
func (m *markdown) search(s *pass.Search) {
	if s == nil {
		return
	}
	m.line("### Chosen by measurement")
	m.line("%s", prose(found(s)))
	var rows [][]string
	for _, l := range s.Layers[:min(shown, len(s.Layers))] {
		for _, v := range l.Variants {
			taken := ""
			if v.Method == l.Method {
				taken = "taken"
			}
			rows = append(rows, []string{prose(l.Tensors[0]), prose(v.Method), count(v.Bytes), Harm(s.Measure, v.Damage), taken})
		}
	}
	m.table([]string{"weight", "method", "bytes:", s.Measure + ":", ""}, rows)
}
