package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// A searched is a search as pages show it.
type searched struct {
	pass.Search
	Summary string
	Front   figure
}

// searched draws the trials of the search; nil if there was none.
func (r *Report) searched() (*searched, error) {
	if r.Search == nil {
		return nil, nil
	}
	f, err := paretoChart(r.Search)
	return &searched{*r.Search, searchText(r.Search), f}, err
}

// searchText is a search in a sentence or two.
func searchText(s *pass.Search) string {
	text := fmt.Sprintf("Sensitivity of %s weights, each measured alone in several forms on %s samples", count(int64(len(s.Layers))), count(int64(s.Samples)))
	if len(s.Trials) == 0 {
		return text + "."
	}
	t := s.Trials[s.Chosen]
	text += fmt.Sprintf("; %s combinations measured. Chosen: %s bytes", count(int64(len(s.Trials))), count(t.Bytes))
	if t.SQNR != nil {
		text += fmt.Sprintf(", output SQNR %.1f dB", *t.SQNR)
	}
	if t.Drop != nil {
		text += fmt.Sprintf(", change of accuracy %+.2f points", 0-100**t.Drop)
	}
	if t.MetricDrop != nil {
		text += fmt.Sprintf(", drop of the metric %.4g", *t.MetricDrop)
	}
	return text + "."
}

// quality is the accuracy of a trial in the unit of the plot: change of accuracy in points where it
// is known, else the output SQNR in decibels.
func quality(t pass.Trial) (float64, bool) {
	switch {
	case t.Drop != nil:
		return 0 - 100**t.Drop, true
	case t.SQNR != nil:
		return *t.SQNR, true
	}
	return 0, false
}

// paretoChart draws file size and accuracy of all trials, and their Pareto front.
func paretoChart(s *pass.Search) (figure, error) {
	f := figure{Title: "File size and accuracy", Note: "Each dot is a combination of methods that was measured. The line is the Pareto front: no other combination is both smaller and more accurate."}
	var all []point
	for _, t := range s.Trials {
		if y, ok := quality(t); ok {
			all = append(all, point{float64(t.Bytes), y})
		}
	}
	if len(all) < 2 {
		return f, nil
	}
	p := plot{caption: f.caption(), height: curveHeight, x: axis{name: "file size"}, y: axis{name: "output SQNR"}}
	lo, hi := all[0].Y, all[0].Y
	for _, q := range all {
		lo, hi, p.x.max = min(lo, q.Y), max(hi, q.Y), max(p.x.max, 1.08*q.X)
	}
	margin := max(0.08*(hi-lo), 0.1)
	p.y.min, p.y.max = lo-margin, hi+margin
	p.x.ticks, p.y.ticks = byteTicks(0, p.x.max), ticks(p.y.min, p.y.max, 1, 0, func(v float64) string { return fmt.Sprintf("%.4g dB", v) })
	if s.Trials[0].Drop != nil {
		p.y.name = "change of accuracy in points"
		p.y.ticks = ticks(p.y.min, p.y.max, 1, 0, signed)
	}
	front := pareto(all)
	p.dots(all, muted, 2.5)
	p.line(front, after)
	p.dots(front, after, 3)
	chosen := s.Trials[s.Chosen]
	x := float64(chosen.Bytes)
	p.mark(point{x, p.y.max}, point{x, p.y.min}, note{label: tick{label: "chosen: " + size(chosen.Bytes)}, downward: true, leftward: x > p.x.max/2})
	var err error
	f.SVG, err = p.svg()
	return f, err
}

// signed formats a change.
func signed(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.4g", v)
}

// pareto are the points to which no other is better in one coordinate and not worse in the other, by X ascending. Less X and
// more Y are better.
func pareto(all []point) []point {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(b.Y, a.Y)) })
	var front []point
	for _, q := range sorted {
		if len(front) == 0 || q.Y > front[len(front)-1].Y {
			front = append(front, q)
		}
	}
	return front
}

// Sensitivity is that of one form of a weight, with its unit.
func (s searched) Sensitivity(v pass.Variant) string {
	return SensitivityText(s.Measure, v.Sensitivity)
}

// Chosen is the method of a layer.
func (s searched) Chosen(l pass.Sensitivity) string { return cmp.Or(l.Method, "unchanged") }

// MeasureName names the quantity of a sensitivity.
func MeasureName(measure string) string {
	if measure == "noise" {
		return "output SQNR"
	}
	return measure
}

// SensitivityText is the sensitivity of the outputs with its unit: output SQNR in decibels for noise, nats for divergences.
func SensitivityText(measure string, sensitivity float64) string {
	switch {
	case sensitivity == 0:
		return "exact"
	case measure == "noise":
		return fmt.Sprintf("%.1f dB", -10*math.Log10(sensitivity))
	}
	return fmt.Sprintf("%.2g nats", sensitivity)
}

// search writes the sensitivities of weights and the chosen methods.
func (m *markdown) search(s *pass.Search) {
	if s == nil {
		return
	}
	m.line("### Methods chosen by measurement (--auto)")
	m.line("%s", prose(searchText(s)))
	var rows [][]string
	for _, l := range s.Layers[:min(shown, len(s.Layers))] {
		for _, v := range l.Variants {
			chosen := ""
			if v.Method == l.Method {
				chosen = "chosen"
			}
			rows = append(rows, []string{prose(pass.Named(l.Tensors[0], l.Module)), prose(v.Method), count(v.Bytes), SensitivityText(s.Measure, v.Sensitivity), chosen})
		}
	}
	m.table([]string{"weight", "method", "bytes:", MeasureName(s.Measure) + ":", ""}, rows)
}
