package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// maxBars is how many bars a chart shows before it sums up the rest. A weight below minBar of the
// largest one is among the rest, too: its bar would be invisible.
const (
	maxBars = 30
	minBar  = 1.0 / 100
)

// A figure is a chart with its title and its description.
type figure struct {
	Title, Note string
	Compares    bool // it has a bar for before and one for after
	SVG         template.HTML
}

// alt is the alternative text of the chart.
func (f figure) alt() string { return strings.TrimSpace(f.Title + ". " + f.Note) }

// charts draws the charts that have bars.
func (r *Report) charts() ([]figure, error) {
	var fs []figure
	for _, draw := range []func(*Report) (figure, barChart){byLayer, byDType, errorByLayer} {
		f, c := draw(r)
		if len(c.labels) == 0 {
			continue
		}
		c.title = f.alt()
		svg, err := c.svg()
		if err != nil {
			return nil, err
		}
		f.SVG = svg
		fs = append(fs, f)
	}
	return fs, nil
}

func byLayer(r *Report) (figure, barChart) {
	ws := largest(r.Weights)
	n := min(maxBars, len(ws))
	for n > 0 && float64(ws[n-1].Bytes.Before) < minBar*float64(ws[0].Bytes.Before) {
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
		labels = append(labels, fmt.Sprintf("%s smaller weights", count(int64(len(rest)))))
		changes = append(changes, c)
		note = fmt.Sprintf("The %d largest of %s weights.", n, count(int64(len(ws))))
	}
	return figure{Title: "Bytes on disk by weight", Note: note, Compares: true}, sides(labels, changes)
}

func byDType(r *Report) (figure, barChart) {
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
	return figure{Title: "Bytes on disk by element type", Note: note, Compares: true}, sides(labels, changes)
}

// sides compares bytes before and after.
func sides(labels []string, changes []Change) barChart {
	b, a := series{color: before}, series{color: after}
	for _, c := range changes {
		b.values, b.notes = append(b.values, float64(c.Before)), append(b.notes, size(c.Before))
		a.values, a.notes = append(a.values, float64(c.After)), append(a.notes, size(c.After))
	}
	return barChart{labels: labels, series: []series{b, a}, ticks: byteTicks}
}

func errorByLayer(r *Report) (figure, barChart) {
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
	n := min(maxBars, len(ws))
	c := barChart{series: []series{{color: after}}, ticks: decibelTicks}
	s := &c.series[0]
	for _, w := range ws[:n] {
		c.labels = append(c.labels, w.Tensor)
		s.values = append(s.values, max(0, *w.Error.SQNR))
		s.notes = append(s.notes, sqnr(w.Error))
	}
	note := "SQNR (signal-to-quantization-noise ratio) of each changed weight, the lowest first; higher is better."
	if len(ws) > n {
		note += fmt.Sprintf(" The %d lowest of %s.", n, count(int64(len(ws))))
	}
	if exact > 0 {
		note += fmt.Sprintf(" Not shown: %s exact.", count(int64(exact)))
	}
	return figure{Title: "SQNR by weight", Note: note}, c
}

// largest sorts by bytes before, stably.
func largest(ws []Weight) []Weight {
	ws = slices.Clone(ws)
	slices.SortStableFunc(ws, func(a, b Weight) int { return cmp.Compare(b.Bytes.Before, a.Bytes.Before) })
	return ws
}
