package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// A Verification is the result of running two models, or one.
type Verification struct {
	A       string               `json:"a"`
	B       string               `json:"b,omitempty"`
	Result  *verification.Result `json:"verification"`
	Gates   []report.Gate        `json:"gates"`
	Verdict report.Verdict       `json:"verdict"`
}

// How many outputs and layers the text lists; the JSON form has all.
const (
	maxOutputs = 20
	maxLayers  = 10
)

// JSON writes all facts.
func (v Verification) JSON(w io.Writer, _ Style) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Text writes the outputs, the layer with the largest drop in SQNR, the layers with the lowest SQNR and the gates.
func (v Verification) Text(w io.Writer, s Style) error {
	head := s.bold(v.A)
	if v.B != "" {
		head += " → " + s.bold(v.B)
	}
	if _, err := fmt.Fprintln(w, head); err != nil {
		return err
	}
	t := &textTable{indent: "  "}
	v.ran(t, s)
	gates(t, s, v.Gates, v.Verdict)
	if err := t.write(w); err != nil {
		return err
	}
	return v.layers(w, s)
}

func (v Verification) ran(t *textTable, s Style) {
	r := v.Result
	t.add("data", r.Data.Text()+"; run by "+r.Backend)
	if caveat := r.Data.Caveat(); caveat != "" {
		t.add("", s.dim(caveat))
	}
	for _, note := range r.Remarks() {
		t.add("", s.dim(note))
	}
	for i, o := range r.Outputs[:min(len(r.Outputs), maxOutputs)] {
		t.add(first(i, "outputs"), o.Name+": "+o.Text())
	}
	if rest := len(r.Outputs) - maxOutputs; rest > 0 {
		t.add("", fmt.Sprintf("and %d more, see --json", rest))
	}
	if v.B == "" && len(r.Outputs) > 0 {
		t.add("tolerance", beyond(s, r.Beyond))
	}
	if r.Accuracy != nil {
		t.add("accuracy", r.Accuracy.Text())
	}
	if r.Metric != nil {
		t.add("metric", Escape(r.Metric.Name)+" "+r.Metric.Text())
	}
	if b := r.Breaks; b != nil {
		t.add("largest drop", fmt.Sprintf("at %s (%s %s): %s", pass.Named(b.Value, b.Module), b.Op, b.Node, b.Text()))
	}
	if a := r.Activations; a != nil {
		t.add("peak activations", fmt.Sprintf("%s → %s", size(a.Before), size(a.After)))
	}
}

func beyond(s Style, what string) string {
	if what == "" {
		return s.good("met by all recorded outputs")
	}
	return s.bad("exceeded") + ": " + what
}

// layers lists those with the lowest SQNR.
func (v Verification) layers(w io.Writer, s Style) error {
	ls := slices.DeleteFunc(slices.Clone(v.Result.Layers), func(l verification.Layer) bool { return l.Errors.Exact })
	if len(ls) == 0 {
		return nil
	}
	slices.SortStableFunc(ls, func(a, b verification.Layer) int { return cmp.Compare(a.Errors.DB(), b.Errors.DB()) })
	n := min(len(ls), maxLayers)
	if _, err := fmt.Fprintf(w, "\n  the %d of %d layers with the lowest SQNR\n", n, len(v.Result.Layers)); err != nil {
		return err
	}
	t := &textTable{indent: "  ", align: "llrrr"}
	t.add(s.dim("value"), s.dim("operator"), s.dim("SQNR"), s.dim("cosine"), s.dim("max abs error"))
	for _, l := range ls[:n] {
		t.add(abridged(pass.Named(l.Value, l.Module)), l.Op, l.Errors.Text(), optional("%.6f", l.Errors.Cosine), optional("%.2g", l.Errors.Max))
	}
	return t.write(w)
}

func optional(format string, x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(format, *x)
}

// comparison is a verification in a line of a summary.
func comparison(s Style, r *verification.Result) string {
	if r.Skipped != "" {
		return s.bad("not run") + ": " + r.Skipped
	}
	data := "(" + r.Data.Text() + ")"
	o := r.Worst()
	if o == nil {
		return data
	}
	text := "output "
	if n := len(r.Outputs); n > 1 {
		text = fmt.Sprintf("worst of %d outputs (%s) ", n, o.Name)
	}
	return text + o.Text() + " " + data
}
