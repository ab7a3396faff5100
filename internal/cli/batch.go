package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/profile"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// An Outcome is the result of one model, or its error, with what the program measured of its training.
type Outcome struct {
	mcompress.Outcome
	Profile *profile.Profile // nil for none
}

// A Batch is the outcomes of one call, in the order of its arguments.
type Batch []Outcome

// JSON writes the report of a single model that has one, of one that was trained with the environment and the profile, or for several the array of those that
// have one.
func (b Batch) JSON(w io.Writer, _ Style, _ bool) error {
	if len(b) == 1 && b[0].Err == nil {
		r := b[0].Result.Report
		if e := r.Environment; e != nil && len(e.Training) > 0 {
			return r.JSONWith(w, &observed{e, b[0].Profile})
		}
		return r.JSON(w)
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

// observed is what JSON has of a training besides its report.
type observed struct {
	Environment *report.Environment `json:"environment"`
	Profile     *profile.Profile    `json:"profile,omitempty"`
}

// Text writes a summary of a single model, or a line for each of several. After a dry run
// the ledgers come first, as there are no reports.
func (b Batch) Text(w io.Writer, s Style, dry bool) error {
	if dry {
		for _, o := range b {
			if o.Err == nil {
				if err := writeLedger(w, s, o.Result); err != nil {
					return err
				}
			}
		}
	}
	if len(b) == 1 && b[0].Err == nil {
		return errors.Join(writeSummary(w, s, b[0]), trainingProfile(w, b[0].Profile))
	}
	t := &textTable{align: "lrrrrrr"}
	var head []string
	for _, name := range []string{"model", "size before", "size after", "ratio", "coverage", "changed", "output SQNR", "gates", "result"} {
		head = append(head, s.bold(name))
	}
	t.add(head...)
	for _, o := range b {
		t.add(o.line(s)...)
	}
	if err := t.write(w); err != nil {
		return err
	}
	if err := b.alternatives(w); err != nil {
		return err
	}
	for _, o := range b {
		if err := trainingProfile(w, o.Profile); err != nil {
			return err
		}
	}
	return b.caveat(w, s)
}

// alternatives are the lines about models that another method makes much smaller.
func (b Batch) alternatives(w io.Writer) error {
	for _, o := range b {
		if o.Alternative == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "alternative for %s: %s\n", o.Model, o.Alternative); err != nil {
			return err
		}
	}
	return nil
}

// caveat qualifies output SQNRs that rest on random inputs.
func (b Batch) caveat(w io.Writer, s Style) error {
	for _, o := range b {
		if o.Err != nil || o.Result.Report.Verification == nil {
			continue
		}
		if text := o.Result.Report.Verification.Data.Caveat(); text != "" {
			_, err := fmt.Fprintln(w, s.dim(text))
			return err
		}
	}
	return nil
}

func (o Outcome) line(s Style) []string {
	if o.Err != nil {
		return []string{o.Model, "", "", "", "", "", "", "", s.bad("failed")}
	}
	r := o.Result.Report
	c := r.Totals.FileBytes
	changed, all := weights(r)
	result := target(o.Result)
	if o.Result.Rejected {
		result = s.bad(result)
	}
	return []string{
		o.Model, size(c.Before), size(c.After), ratio(c), percent(r.Coverage.Fraction), fmt.Sprintf("%d/%d", changed, all),
		outputSQNR(r.Verification), allGates(s, r), result,
	}
}

// outputSQNR is that of the worst output, "" where nothing was run.
func outputSQNR(v *verification.Result) string {
	if v == nil || v.Skipped != "" {
		return ""
	}
	switch o := v.Worst(); {
	case o == nil:
		return ""
	case o.Sizes != nil:
		return "another size"
	case o.Errors != nil:
		return o.Errors.Text()
	case o.Agreement != nil:
		return o.AgreementText()
	}
	return ""
}

// allGates is the result of the evaluated gates, with the names of those that failed; "" if there are none.
func allGates(s Style, r *report.Report) string {
	evaluated := slices.DeleteFunc(slices.Clone(r.Gates), func(g report.Gate) bool { return g.Open })
	var failed []string
	for _, g := range evaluated {
		if !g.Held {
			failed = append(failed, g.Name)
		}
	}
	switch {
	case len(evaluated) == 0:
		return ""
	case failed == nil && r.Verdict.Qualifier() != "":
		return s.warn("passed" + r.Verdict.Qualifier())
	case failed == nil:
		return s.good("passed" + r.Verdict.Qualifier())
	}
	return s.bad(strings.Join(failed, ", ") + " failed" + r.Verdict.Qualifier())
}
