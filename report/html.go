package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

//go:embed colors.css
var colors string

// A page is the data of page.html.
type page struct {
	Trained []trained
	Found   *searched // nil without --auto
	*Report
	Title   string
	Style   template.CSS
	Gates   []gateView
	Tiles   []tile
	Figures []figure
	Checked *verificationView
	Depth   figure // error by layer; without a drawing where there is none
	Changed []*Weight
	Reasons []reason
	Steps   []*Row
	Notes   []remark
}

type gateView struct {
	Name, Value, Relation, Bound string
	Class, Mark                  string
}

// A tile is one headline figure.
type tile struct{ Name, Big, Small, Bar string }

// HTML writes r as a self-contained page.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"visible": visible, "size": size, "shape": shape, "comma": count, "sqnr": sqnr,
		"cosine": cosine, "measure": MeasureName, "maxError": maxError, "sparsity": sparsity, "kept": Weight.kept, "times": times, "named": pass.Named, "targetHead": targetHead, "removedText": RemovedText, "targetChoice": targetChoice, "rows": rows, "omitted": omitted,
		"join": func(xs []string) string { return strings.Join(xs, " → ") },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	figures, err := r.charts()
	if err != nil {
		return err
	}
	depth, err := sqnrByLayer(r.Verification)
	if err != nil {
		return err
	}
	trained, err := r.trainings()
	if err != nil {
		return err
	}
	search, err := r.searched()
	if err != nil {
		return err
	}
	p := page{
		Report:  r,
		Trained: trained,
		Found:   search,
		Title:   visible(r.title()),
		Style:   template.CSS(colors + pageStyle),
		Tiles:   r.tiles(),
		Figures: figures,
		Checked: view(r.Verification),
		Depth:   depth,
		Changed: r.changed(),
		Reasons: r.reasons(),
		Steps:   r.steps(),
		Notes:   r.notes(),
	}
	for _, g := range r.Gates {
		v, relation, bound := g.Shown()
		p.Gates = append(p.Gates, gateView{g.Name, visible(v), relation, bound, g.class(), g.mark()})
	}
	return t.Execute(w, p)
}

func (r *Report) tiles() []tile {
	t := r.Totals
	ts := []tile{
		{"File size", smaller(t.FileBytes), size(t.FileBytes.Before) + " → " + size(t.FileBytes.After), ""},
		{"Runtime memory", smaller(t.RuntimeBytes), size(t.RuntimeBytes.Before) + " → " + size(t.RuntimeBytes.After) + " of weights in " + t.Runtime, ""},
		{"Coverage", percent(r.Coverage.Fraction), r.Coverage.text(), fmt.Sprintf("%.2f%%", 100*r.Coverage.Fraction)},
	}
	if w := r.worst(); w != nil {
		ts = append(ts, tile{"Lowest SQNR of a weight", sqnr(w.Error), visible(w.named()), ""})
	}
	if m := t.Metadata; m != nil {
		ts = append(ts, tile{"Doc strings and metadata", size(m.After), size(m.Before) + " before", ""})
	}
	if a := t.Activations; a != nil {
		ts = append(ts, tile{"Peak activations", size(a.After), size(a.Before) + " before", ""})
	}
	return append(ts, verificationTile(r.Verification)...)
}
