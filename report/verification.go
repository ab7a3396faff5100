package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/verify"
)

// A verification is what pages say of running the models.
type verification struct {
	*verify.Result
	On      string // what they ran on
	Outputs []outputView
	Worst   []verify.Layer // the first of the layers by their error
}

type outputView struct{ Name, SQNR, Cosine, Max, Agreement, NonFinite string }

// view is nil where nobody asked to run the models.
func view(v *verify.Result) *verification {
	if v == nil {
		return nil
	}
	x := &verification{Result: v, Worst: worstLayers(v.Layers)}
	if v.Data != nil {
		x.On = v.Data.Text() + ", run by " + v.Backend + "."
	}
	for _, o := range v.Outputs {
		row := outputView{Name: o.Name, Agreement: agreement(o.Agreement)}
		if e := o.Errors; e != nil {
			row.SQNR, row.Cosine, row.Max, row.NonFinite = e.Text(), closeness(e), largestError(e), e.NonFiniteText()
		}
		x.Outputs = append(x.Outputs, row)
	}
	return x
}

// worstLayers are those that are not exact, the worst first and no more than a page shows.
func worstLayers(ls []verify.Layer) []verify.Layer {
	ls = slices.DeleteFunc(slices.Clone(ls), func(l verify.Layer) bool { return l.Errors.Exact })
	slices.SortStableFunc(ls, func(a, b verify.Layer) int { return cmp.Compare(a.Errors.DB(), b.Errors.DB()) })
	return ls[:min(len(ls), maxBars)]
}

func closeness(e *verify.Errors) string {
	if e.Cosine == nil {
		return ""
	}
	return fmt.Sprintf("%.6f", *e.Cosine)
}

func largestError(e *verify.Errors) string {
	switch {
	case e.Max == nil:
		return ""
	case *e.Max == 0:
		return "0"
	}
	return fmt.Sprintf("%.2e", *e.Max)
}

func agreement(share *float64) string {
	if share == nil {
		return ""
	}
	return verify.Percent(*share)
}

// verification writes what came of running both models.
func (m *markdown) verification(r *verify.Result) {
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
	var rows [][]string
	for _, o := range v.Outputs {
		rows = append(rows, []string{code(o.Name), o.SQNR, o.Cosine, o.Max, o.Agreement, o.NonFinite})
	}
	m.folded([]string{"output", "SQNR:", "cosine:", "max error:", "agreement:", "not finite:"}, rows, shown)
	if a := v.Accuracy; a != nil {
		m.line("Accuracy: **%s**.", a.Text())
	}
	if b := v.Breaks; b != nil {
		m.line("Most of the error comes from %s, made by %s %s: %s.", code(b.Value), prose(b.Op), code(b.Node), b.Text())
	}
	m.layers(v)
}

func (m *markdown) layers(v *verification) {
	var rows [][]string
	for _, l := range v.Worst {
		rows = append(rows, []string{code(l.Value), prose(l.Op), l.Errors.Text(), closeness(&l.Errors), largestError(&l.Errors)})
	}
	if len(rows) > 0 {
		m.line("The worst of %s layers:", count(int64(len(v.Layers))))
		m.folded([]string{"value", "operator", "SQNR:", "cosine:", "max error:"}, rows, 0)
	}
}

// verificationTile is the largest figure of running the models, if they were run.
func verificationTile(r *verify.Result) []tile {
	if r == nil || r.Worst() == nil {
		return nil
	}
	o := r.Worst()
	t := tile{"Worst output error", "", visible(o.Name), ""}
	if o.Errors != nil {
		t.Big = o.Errors.Text()
	}
	switch {
	case o.Agreement == nil:
	case o.Errors == nil:
		t.Big = agreement(o.Agreement) + " agree"
	default:
		t.Small += ", " + agreement(o.Agreement) + " agree"
	}
	return []tile{t}
}
