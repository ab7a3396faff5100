package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// A verificationView is a comparison of two models as pages show it.
type verificationView struct {
	*verification.Result
	On      string // data and backend
	Caveat  string // "" for samples from files
	Outputs []outputView
	Sizes   []string             // of the outputs whose size differs
	Worst   []verification.Layer // the first of the layers by their error
}

type outputView struct{ Name, SQNR, Cosine, Max, Agreement, NonFinite string }

// view is nil where the models were not to be run.
func view(v *verification.Result) *verificationView {
	if v == nil {
		return nil
	}
	x := &verificationView{Result: v, Worst: worstLayers(v.Layers)}
	if v.Data != nil {
		x.On, x.Caveat = "Data: "+v.Data.Text()+". Run by "+v.Backend+".", caveat(v)
	}
	for _, o := range v.Outputs {
		row := outputView{Name: o.Name, Agreement: agreement(o.Agreement)}
		if e := o.Errors; e != nil {
			row.SQNR, row.Cosine, row.Max, row.NonFinite = e.Text(), closeness(e), largestError(e), e.NonFiniteText()
		}
		if o.Sizes != nil {
			row.SQNR = "another size"
			x.Sizes = append(x.Sizes, o.Name+": "+o.Sizes.Text())
		}
		x.Outputs = append(x.Outputs, row)
	}
	return x
}

// caveat qualifies results on random inputs as a sentence; "" for samples from files.
func caveat(v *verification.Result) string {
	if v.Data.Caveat() == "" {
		return ""
	}
	return "These results rest on random inputs, which are no evidence of accuracy: verify with samples of the model's " +
		"task (--data)."
}

// worstLayers are the inexact ones, the lowest SQNR first, no more than a page shows.
func worstLayers(ls []verification.Layer) []verification.Layer {
	ls = slices.DeleteFunc(slices.Clone(ls), func(l verification.Layer) bool { return l.Errors.Exact })
	slices.SortStableFunc(ls, func(a, b verification.Layer) int { return cmp.Compare(a.Errors.DB(), b.Errors.DB()) })
	return ls[:min(len(ls), maxBars)]
}

func closeness(e *verification.Errors) string {
	if e.Cosine == nil {
		return ""
	}
	return fmt.Sprintf("%.6f", *e.Cosine)
}

func largestError(e *verification.Errors) string {
	switch {
	case e.Max == nil:
		return ""
	case *e.Max == 0:
		return "0"
	}
	return fmt.Sprintf("%.2e", *e.Max)
}

func agreement(fraction *float64) string {
	if fraction == nil {
		return ""
	}
	return verification.Percent(*fraction)
}

// verification writes the comparison of both models.
func (m *markdown) verification(r *verification.Result) {
	v := view(r)
	if v == nil {
		return
	}
	m.line("### Verification")
	if v.Skipped != "" {
		m.line("_The models were not run: %s._", prose(v.Skipped))
		return
	}
	m.line("%s", prose(v.On))
	if v.Caveat != "" {
		m.line("**%s**", prose(v.Caveat))
	}
	for _, note := range v.Remarks() {
		m.line("_%s._", prose(note))
	}
	var rows [][]inline
	for _, o := range v.Outputs {
		rows = append(rows, append([]inline{code(o.Name)}, cells(o.SQNR, o.Cosine, o.Max, o.Agreement, o.NonFinite)...))
	}
	m.folded([]inline{"output", "SQNR:", "cosine:", "max abs error:", "agreement:", "NaN or infinite:"}, rows, shown)
	for _, text := range v.Sizes {
		m.line("%s.", prose(text))
	}
	if a := v.Accuracy; a != nil {
		m.line("Accuracy: %s.", bold(a.Text()))
	}
	if a := v.Metric; a != nil {
		m.line("Metric %s: %s.", prose(a.Name), bold(a.Text()))
	}
	if b := v.Breaks; b != nil {
		m.line(
			"Largest drop: %s at %s, output of %s %s.",
			prose(b.Text()),
			code(pass.Named(b.Value, b.Module)),
			prose(b.Op),
			code(b.Node),
		)
	}
	m.layers(v)
}

func (m *markdown) layers(v *verificationView) {
	var rows [][]inline
	for _, l := range v.Worst {
		rows = append(rows, append([]inline{code(pass.Named(l.Value, l.Module))},
			cells(l.Op, l.Errors.Text(), closeness(&l.Errors), largestError(&l.Errors))...))
	}
	if len(rows) > 0 {
		m.line("The %s of %s layers with the lowest SQNR:", numberOf(len(rows)), numberOf(len(v.Layers)))
		m.folded([]inline{"value", "operator", "SQNR:", "cosine:", "max abs error:"}, rows, 0)
	}
}
