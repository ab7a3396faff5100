package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/report"
)

// An Outcome is what one model's turn came to: a result, or an error.
type Outcome struct {
	Model  string
	Result *job.Result
	Err    error
}

// A Batch is the outcomes of one call, in the order of its arguments.
type Batch []Outcome

// Changed reports whether some weight is stored in another way now.
func (b Batch) Changed() bool {
	return slices.ContainsFunc(b, func(o Outcome) bool { return o.Err == nil && o.Result.Report.Coverage.ChangedBytes > 0 })
}

// JSON writes the report of a single model, or for several the array of those that have
// one.
func (b Batch) JSON(w io.Writer, _ Style, _ bool) error {
	if len(b) == 1 {
		return b[0].Result.Report.JSON(w)
	}
	reports := []*report.Report{}
	for _, o := range b {
		if o.Err == nil {
			reports = append(reports, o.Result.Report)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(reports)
}

// Text writes a summary of a single model, or a line for each of several. After a dry run
// the ledgers come first: nothing else shows them.
func (b Batch) Text(w io.Writer, s Style, dry bool) error {
	if dry {
		for _, o := range b {
			if o.Err == nil {
				if err := Ledger(w, s, o.Result); err != nil {
					return err
				}
			}
		}
	}
	if len(b) == 1 {
		return Summary(w, s, b[0].Result)
	}
	t := &Table{Right: "lrrrrrr"}
	var head []string
	for _, name := range []string{"model", "before", "after", "ratio", "coverage", "changed", "outputs", "gates", "result"} {
		head = append(head, s.Bold(name))
	}
	t.Add(head...)
	for _, o := range b {
		t.Add(o.line(s)...)
	}
	return t.Write(w)
}

func (o Outcome) line(s Style) []string {
	if o.Err != nil {
		return []string{o.Model, "", "", "", "", "", "", "", s.Bad("failed")}
	}
	r := o.Result.Report
	c := r.Totals.FileBytes
	changed, all := weights(r)
	result := target(o.Result)
	if o.Result.Rejected {
		result = s.Bad(result)
	}
	return []string{
		o.Model, size(c.Before), size(c.After), ratio(c), percent(r.Coverage.Share), fmt.Sprintf("%d/%d", changed, all),
		nearness(r.Verification), allGates(s, r.Gates), result,
	}
}

// nearness is how near the worst output comes to the source's, "" where nothing was run.
func nearness(v *verify.Result) string {
	if v == nil || v.Skipped != "" {
		return ""
	}
	switch o := v.Worst(); {
	case o == nil:
		return ""
	case o.Errors != nil:
		return o.Errors.Text()
	case o.Agreement != nil:
		return verify.Percent(*o.Agreement) + " agree"
	}
	return ""
}

// allGates is the verdict of the gates that were judged, with the names of those that did not hold; "" if there are none.
func allGates(s Style, gates []report.Gate) string {
	judged := slices.DeleteFunc(slices.Clone(gates), func(g report.Gate) bool { return g.Open })
	var broken []string
	for _, g := range judged {
		if !g.Held {
			broken = append(broken, g.Name)
		}
	}
	switch {
	case len(judged) == 0:
		return ""
	case broken == nil:
		return s.Good("held")
	}
	return s.Bad(strings.Join(broken, ", ") + " did not hold")
}
