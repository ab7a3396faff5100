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
	Rows    []trialRow
}

// searched draws the trials of the search; nil if there was none.
func (r *Report) searched() (*searched, error) {
	if r.Search == nil {
		return nil, nil
	}
	f, rows, err := paretoChart(r.Search)
	return &searched{*r.Search, searchText(r.Search), f, rows}, err
}

// searchText is a search in a sentence or two.
func searchText(s *pass.Search) string {
	text := fmt.Sprintf(
		"Sensitivity of %s weights, each measured alone in several forms on %s samples",
		count(int64(len(s.Layers))),
		count(int64(s.Samples)),
	)
	if n := len(s.Failures()); n > 0 {
		text += fmt.Sprintf("; %s measurements failed and were left out", count(int64(n)))
	}
	if s.Chosen < 0 || s.Chosen >= len(s.Trials) { // no trial, or a report that somebody edited
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
		// A difference, as the negative of 0 is -0, which would be shown.
		return 0 - 100**t.Drop, true
	case t.SQNR != nil:
		return *t.SQNR, true
	}
	return 0, false
}

// A trialRow is a trial as a row of a table and a point of the chart.
type trialRow struct {
	Label, What            string
	Bytes                  int64
	SQNR, Drop, MetricDrop string
	Accepted, Front        bool
	Chosen                 bool
}

// paretoChart draws file size and accuracy of all trials, and their Pareto front.
func paretoChart(s *pass.Search) (figure, []trialRow, error) {
	f := figure{
		Title: "File size and accuracy",
		Note: "Each point is a combination of methods that was measured, by its number in the table. The line and the " +
			"full points are the Pareto front: no other combination is both smaller and more accurate. " +
			"The ring is the chosen one.",
	}
	var rows []trialRow
	var marks []mark
	var row []int // of the marks
	for i, t := range s.Trials {
		r := trialRow{
			Label:    fmt.Sprint(i + 1),
			What:     visible(t.What),
			Bytes:    t.Bytes,
			Accepted: t.Accepted,
			Chosen:   i == s.Chosen,
		}
		if t.Error != "" {
			r.What += ": " + visible(t.Error)
		}
		if t.Ended > 0 {
			r.What += fmt.Sprintf(" (gate on accuracy missed after %s samples)", count(int64(t.Ended)))
		}
		if t.SQNR != nil {
			r.SQNR = fmt.Sprintf("%.1f dB", *t.SQNR)
		}
		if t.Drop != nil {
			r.Drop = signed(0 - 100**t.Drop)
		}
		if t.MetricDrop != nil {
			r.MetricDrop = fmt.Sprintf("%.4g", *t.MetricDrop)
		}
		rows = append(rows, r)
		if y, ok := quality(t); ok {
			marks = append(
				marks,
				mark{
					at:     point{float64(t.Bytes), y},
					label:  r.Label,
					full:   fmt.Sprintf("%s: %s, %s", r.Label, r.What, size(t.Bytes)),
					chosen: r.Chosen,
				},
			)
			row = append(row, i)
		}
	}
	axis, ticksOf := "output SQNR", decibelsOf
	if len(s.Trials) > 0 && s.Trials[0].Drop != nil {
		axis, ticksOf = "change of accuracy in points", func(lo, hi float64) []tick { return ticks(lo, hi, 1, 0, signed) }
	}
	var err error
	f.SVG, err = paretoPlot(f, axis, ticksOf, marks)
	for i, m := range marks {
		rows[row[i]].Front = m.front
	}
	return f, rows, err
}

func decibelsOf(lo, hi float64) []tick {
	return ticks(lo, hi, 1, 0, func(v float64) string { return fmt.Sprintf("%.4g dB", v) })
}

// signed formats a change.
func signed(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.4g", v)
}

// pareto are the points to which no other is better in one coordinate and not worse in the other, by X ascending. Less
// X and more Y are better.
func pareto(all []point) []point {
	sorted := slices.Clone(all)
	// Of equal sizes the best first, so that the others are not on the front.
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
	return SensitivityText(s.Measure, v)
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

// SensitivityText is the sensitivity of the outputs to v with its unit: output SQNR in decibels for noise, nats for
// divergences.
func SensitivityText(measure string, v pass.Variant) string {
	switch {
	case v.Error != "":
		return "failed"
	case v.Sensitivity == 0:
		return "exact"
	case measure == "noise":
		return fmt.Sprintf("%.1f dB", -10*math.Log10(v.Sensitivity))
	}
	return fmt.Sprintf("%.2g nats", v.Sensitivity)
}

// firstOf is the first of names; "" without any, as in a report that somebody edited.
func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// search writes the sensitivities of weights and the chosen methods.
func (m *markdown) search(s *pass.Search) {
	if s == nil {
		return
	}
	m.line("### Methods chosen by measurement (--auto)")
	m.line("%s", prose(searchText(s)))
	var rows [][]inline
	for _, l := range s.Layers[:min(shown, len(s.Layers))] {
		for _, v := range l.Variants {
			chosen := inline("")
			if v.Method == l.Method {
				chosen = "chosen"
			}
			rows = append(
				rows,
				[]inline{
					prose(pass.Named(firstOf(l.Tensors), l.Module)),
					prose(v.Method),
					prose(count(v.Bytes)),
					prose(SensitivityText(s.Measure, v)),
					chosen,
				},
			)
		}
	}
	m.table([]inline{"weight", "method", "bytes:", prose(MeasureName(s.Measure)) + ":", ""}, rows)
}
