package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"gonum.org/v1/plot"
)

// longest is how many bars a chart shows before it sums up the rest, and tooThin the
// part of the largest below which a bar could not be seen.
const (
	longest = 30
	tooThin = 1.0 / 100
)

// A figure is a chart as the page shows it.
type figure struct {
	Title, Note string
	Sides       bool // it has a bar for before and one for after
	SVG         template.HTML
}

// charts draws what there is to draw: a chart without bars is left out.
func (r *Report) charts() ([]figure, error) {
	var fs []figure
	for _, draw := range []func(*Report) (figure, chart){byLayer, byDType, errorByLayer} {
		f, c := draw(r)
		if len(c.labels) == 0 {
			continue
		}
		c.title = f.Title
		svg, err := c.svg()
		if err != nil {
			return nil, err
		}
		f.SVG = svg
		fs = append(fs, f)
	}
	return fs, nil
}

func byLayer(r *Report) (figure, chart) {
	ws := largest(r.Weights)
	n := min(longest, len(ws))
	for n > 0 && float64(ws[n-1].Bytes.Before) < tooThin*float64(ws[0].Bytes.Before) {
		n--
	}
	var labels []string
	var changes []Change
	for _, w := range ws[:n] {
		labels = append(labels, w.Tensor)
		changes = append(changes, w.Bytes)
	}
	note := ""
	if rest := ws[n:]; len(rest) > 0 {
		var c Change
		for _, w := range rest {
			c.Before += w.Bytes.Before
			c.After += w.Bytes.After
		}
		labels = append(labels, fmt.Sprintf("%s smaller, together", count(int64(len(rest)))))
		changes = append(changes, c)
		note = fmt.Sprintf("The %d largest of %s weights.", n, count(int64(len(ws))))
	}
	return figure{Title: "Bytes on disk by weight", Note: note, Sides: true}, sides(labels, changes)
}

func byDType(r *Report) (figure, chart) {
	var labels []string
	var changes []Change
	ds := slices.Clone(r.Totals.DTypes)
	slices.SortStableFunc(ds, func(a, b DTypeBytes) int {
		return cmp.Compare(max(b.Bytes.Before, b.Bytes.After), max(a.Bytes.Before, a.Bytes.After))
	})
	for _, d := range ds {
		labels = append(labels, d.DType)
		changes = append(changes, d.Bytes)
	}
	note := "All tensors of the model, scales, zero points and indices included."
	return figure{Title: "Bytes on disk by element type", Note: note, Sides: true}, sides(labels, changes)
}

// sides is a chart of bytes before and after.
func sides(labels []string, changes []Change) chart {
	b, a := series{color: before}, series{color: after}
	for _, c := range changes {
		b.values, b.notes = append(b.values, float64(c.Before)), append(b.notes, size(c.Before))
		a.values, a.notes = append(a.values, float64(c.After)), append(a.notes, size(c.After))
	}
	return chart{labels: labels, series: []series{b, a}, ticks: byteTicks{}}
}

func errorByLayer(r *Report) (figure, chart) {
	var ws []Weight
	exact := 0
	for _, w := range r.Weights {
		switch {
		case w.Error == nil:
		case w.Error.Exact:
			exact++
		case w.Error.SQNR != nil:
			ws = append(ws, w)
		}
	}
	slices.SortStableFunc(ws, func(a, b Weight) int { return cmp.Compare(*a.Error.SQNR, *b.Error.SQNR) })
	n := min(longest, len(ws))
	c := chart{series: []series{{color: after}}, ticks: plot.Ticker(decibelTicks{})}
	s := &c.series[0]
	for _, w := range ws[:n] {
		c.labels = append(c.labels, w.Tensor)
		s.values = append(s.values, max(0, *w.Error.SQNR))
		s.notes = append(s.notes, sqnr(w.Error))
	}
	note := "Signal to quantization noise of each changed weight, the worst first; more is better."
	if len(ws) > n {
		note += fmt.Sprintf(" The %d worst of %s.", n, count(int64(len(ws))))
	}
	if exact > 0 {
		note += fmt.Sprintf(" Kept exactly, so not shown: %s.", count(int64(exact)))
	}
	return figure{Title: "Error by weight", Note: note}, c
}

// largest are ws by their bytes before, and where those are equal in their order.
func largest(ws []Weight) []Weight {
	ws = slices.Clone(ws)
	slices.SortStableFunc(ws, func(a, b Weight) int { return cmp.Compare(b.Bytes.Before, a.Bytes.Before) })
	return ws
}
