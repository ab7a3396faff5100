package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

const (
	neighborHeight = 30
	neighborDot    = 70  // left of the names, with space for edges
	neighborName   = 280 // after the operators
	maxEdgeBend    = 52
	maxNeighborLen = 78 // characters of a name
)

// neighborhood draws the nodes around the layer with the largest drop as a graph, from the top down in the order of
// execution: an edge to the next row is straight, and one that skips rows is bent.
func neighborhood(v *verification.Result) (figure, error) {
	if v == nil || v.Breaks == nil || len(v.Breaks.Nodes) == 0 {
		return figure{}, nil
	}
	nodes := v.Breaks.Nodes
	f := figure{
		Title: "Nodes around the largest drop",
		Note: "The nodes before and after the layer with the largest drop of SQNR, in the order of execution, with the " +
			"SQNR of the value that each computes.",
	}
	d := &drawing{
		Title:       f.Title,
		Description: neighborText(v.Breaks),
		Width:       chartWidth,
		Height:      number(neighborHeight * len(nodes)),
	}
	middle := func(i int) float64 { return neighborHeight * (float64(i) + 0.5) }
	for i, n := range nodes {
		if n.Worst(v.Breaks) {
			d.rectangle(0, middle(i)-neighborHeight/2, chartWidth, middle(i)+neighborHeight/2, "var(--bad-tint)")
		}
		for _, from := range earlier(n, i) {
			d.edge(middle(from), middle(i), float64(i-from))
		}
	}
	for i, n := range nodes {
		fill, note := after, ""
		if n.Worst(v.Breaks) {
			fill, note = "var(--bad)", "largest drop · "
		}
		y := baseline(middle(i), textSize)
		d.Elements = append(d.Elements, element{X: neighborDot, Y: number(middle(i)), Radius: 4, Fill: fill})
		d.text(shorten(visible(n.Op), 26), neighborDot+16, y, textSize, "", strong)
		name := named(pass.Named(n.Value, n.Module), maxNeighborLen)
		d.text(name.label, neighborName, y, textSize, "", muted).Full = name.full
		d.text(note+n.SQNRText(), chartWidth-8, y, textSize, "end", strong)
	}
	var err error
	f.SVG, err = d.svg()
	return f, err
}

// edge draws a line from one row to a later one.
func (d *drawing) edge(from, to, rows float64) {
	p := path([]point{{neighborDot, from}, {neighborDot, to}})
	if rows > 1 {
		x := number(neighborDot - min(maxEdgeBend, 10*rows))
		p = fmt.Sprintf(
			"M%v %vC%v %v %v %v %v %v",
			number(neighborDot),
			number(from),
			x,
			number(from),
			x,
			number(to),
			number(neighborDot),
			number(to),
		)
	}
	d.Elements = append(d.Elements, element{Path: p, Stroke: muted, StrokeWidth: 1})
}

// neighborText is the graph as a list.
func neighborText(b *verification.Break) string {
	var rows []string
	for i, n := range b.Nodes {
		text := fmt.Sprintf("%d: %s %s", i+1, visible(n.Op), visible(pass.Named(n.Value, n.Module)))
		if db := n.SQNRText(); db != "" {
			text += ", SQNR " + db
		}
		if n.Worst(b) {
			text += ", largest drop"
		}
		var after []string
		for _, from := range earlier(n, i) {
			after = append(after, fmt.Sprint(from+1))
		}
		if len(after) > 0 {
			text += ", after " + strings.Join(after, " and ")
		}
		rows = append(rows, text)
	}
	return strings.Join(rows, "; ")
}

// earlier are the inputs of node i that precede it: those of a file that was edited may be any.
func earlier(n verification.Neighbor, i int) []int {
	return slices.DeleteFunc(slices.Clone(n.Inputs), func(from int) bool { return from < 0 || from >= i })
}
