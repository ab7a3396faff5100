package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/report"
)

// A Verification is what came of running two models, or one.
type Verification struct {
	A      string         `json:"a"`
	B      string         `json:"b,omitempty"`
	Result *verify.Result `json:"verification"`
	Gates  []report.Gate  `json:"gates"`
}

// How many outputs and layers the text lists; the JSON form has all.
const (
	mostOutputs = 20
	mostLayers  = 10
)

// JSON writes all facts.
func (v Verification) JSON(w io.Writer, _ Style) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Text writes the outputs, the layer that most of the error comes from, the worst layers and the gates.
func (v Verification) Text(w io.Writer, s Style) error {
	head := s.Bold(v.A)
	if v.B != "" {
		head += " → " + s.Bold(v.B)
	}
	if _, err := fmt.Fprintln(w, head); err != nil {
		return err
	}
	t := &Table{Indent: "  "}
	if r := v.Result; r.Skipped != "" {
		t.Add("not run", r.Skipped)
	} else {
		v.ran(t, s)
	}
	for i, g := range v.Gates {
		t.Add(first(i, "gates"), verdict(s, g))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	return v.layers(w, s)
}

func (v Verification) ran(t *Table, s Style) {
	r := v.Result
	t.Add("data", r.Data.Text()+", run by "+r.Backend)
	for i, o := range r.Outputs[:min(len(r.Outputs), mostOutputs)] {
		t.Add(first(i, "outputs"), o.Name+": "+output(o))
	}
	if rest := len(r.Outputs) - mostOutputs; rest > 0 {
		t.Add("", fmt.Sprintf("and %d more: see --json", rest))
	}
	if v.B == "" && len(r.Outputs) > 0 {
		t.Add("recorded", beyond(s, r.Beyond))
	}
	if r.Accuracy != nil {
		t.Add("accuracy", r.Accuracy.Text())
	}
	if b := r.Breaks; b != nil {
		t.Add("most error", fmt.Sprintf("comes from %s (%s %s): %s", b.Value, b.Op, b.Node, b.Text()))
	}
	if a := r.Activations; a != nil {
		t.Add("activations", fmt.Sprintf("%s → %s at most", size(a.Before), size(a.After)))
	}
}

func beyond(s Style, what string) string {
	if what == "" {
		return s.Good("all within the tolerance")
	}
	return s.Bad("not within the tolerance") + ": " + what
}

// output is what there is to say of one output.
func output(o verify.Output) string {
	text := ""
	if e := o.Errors; e != nil {
		text = e.Text()
		if bad := e.NonFiniteText(); bad != "" {
			text += ", NaN or infinite " + bad
		}
		if e.Cosine != nil && !e.Exact {
			text += fmt.Sprintf(", cosine %.6f", *e.Cosine)
		}
		if e.Max != nil && !e.Exact {
			text += fmt.Sprintf(", max error %.2g", *e.Max)
		}
	}
	if o.Agreement != nil {
		if text != "" {
			text += ", "
		}
		text += verify.Percent(*o.Agreement) + " agree"
	}
	return text
}

// layers lists the worst.
func (v Verification) layers(w io.Writer, s Style) error {
	ls := slices.DeleteFunc(slices.Clone(v.Result.Layers), func(l verify.Layer) bool { return l.Errors.Exact })
	if len(ls) == 0 {
		return nil
	}
	slices.SortStableFunc(ls, func(a, b verify.Layer) int { return cmp.Compare(a.Errors.DB(), b.Errors.DB()) })
	n := min(len(ls), mostLayers)
	if _, err := fmt.Fprintf(w, "\n  the worst %d of %d layers\n", n, len(v.Result.Layers)); err != nil {
		return err
	}
	t := &Table{Indent: "  ", Right: "llrrr"}
	t.Add(s.Dim("value"), s.Dim("operator"), s.Dim("SQNR"), s.Dim("cosine"), s.Dim("max error"))
	for _, l := range ls[:n] {
		t.Add(l.Value, l.Op, l.Errors.Text(), optional("%.6f", l.Errors.Cosine), optional("%.2g", l.Errors.Max))
	}
	return t.Write(w)
}

func optional(format string, x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf(format, *x)
}

// proof is a verification in a line of a summary.
func proof(s Style, r *verify.Result) string {
	if r.Skipped != "" {
		return s.Bad("not run") + ": " + r.Skipped
	}
	text := ""
	if o := r.Worst(); o != nil {
		text = output(*o)
		if len(r.Outputs) > 1 {
			text = o.Name + " at worst: " + text
		}
	}
	return text + "; " + r.Data.Text()
}
