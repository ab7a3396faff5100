package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
)

// maxBars is the number of bars of a chart.
const maxBars = 30

// A figure is a chart with its title and its description.
type figure struct {
	Title, Note string
	Compares    bool // it has a bar for before and one for after
	SVG         template.HTML
}

// A caption is the name and the description of an image for readers who do not see it.
type caption struct{ title, description string }

func (f figure) caption() caption { return caption{f.Title, f.Note} }

// charts draws the charts that have bars.
func (r *Report) charts() ([]figure, error) {
	var fs []figure
	for _, draw := range []func(*Report) (figure, barChart){byDType, errorByLayer} {
		f, c := draw(r)
		if len(c.labels) == 0 {
			continue
		}
		c.caption = f.caption()
		svg, err := c.svg()
		if err != nil {
			return nil, err
		}
		f.SVG = svg
		fs = append(fs, f)
	}
	return fs, nil
}

// An item is a module or a weight as a group of bars.
type item struct {
	name  string
	bytes Change
	err   *Error
}

// items are the modules of r, in the order of the model; where it has none, the weights. kind is their name in texts.
func (r *Report) items() (items []item, kind string) {
	for _, m := range r.Modules {
		items = append(items, item{m.Name(), m.Bytes, m.Error})
	}
	if items != nil {
		return items, "module"
	}
	for _, w := range largest(r.Weights) {
		items = append(items, item{w.Tensor, w.Bytes, w.Error})
	}
	return items, "weight"
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
	all, kind := r.items()
	var items []item
	exact := 0
	for _, x := range all {
		switch {
		case x.err == nil:
		case x.err.Exact:
			exact++
		case x.err.SQNR != nil:
			items = append(items, x)
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(*a.err.SQNR, *b.err.SQNR) })
	n := min(maxBars, len(items))
	c := barChart{series: []series{{color: after}}, ticks: decibelTicks}
	s := &c.series[0]
	for _, x := range items[:n] {
		c.labels = append(c.labels, x.name)
		s.values = append(s.values, max(0, *x.err.SQNR))
		s.notes = append(s.notes, sqnr(x.err))
	}
	f := figure{
		Title: "SQNR by weight",
		Note:  "SQNR (signal-to-quantization-noise ratio) of each changed weight, the lowest first; higher is better.",
	}
	if kind == "module" {
		f = figure{
			Title: "Lowest SQNR by module",
			Note: "Lowest SQNR (signal-to-quantization-noise ratio) of the changed weights of each module, the lowest first; " +
				"higher is better.",
		}
	}
	if len(items) > n {
		f.Note += fmt.Sprintf(" The %d lowest of %s.", n, count(int64(len(items))))
	}
	if exact > 0 {
		f.Note += fmt.Sprintf(" Not shown: %s exact.", count(int64(exact)))
	}
	return f, c
}

// largest sorts by bytes before, stably.
func largest(ws []Weight) []*Weight {
	sorted := make([]*Weight, len(ws))
	for i := range ws {
		sorted[i] = &ws[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Weight) int { return cmp.Compare(b.Bytes.Before, a.Bytes.Before) })
	return sorted
}
