package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An outcome is the verdict at the top of a page: in words and by its class, not by color alone.
type outcome struct{ Class, Mark, Word, Text, Evidence, Caveat string }

func (d Verdict) outcome() outcome {
	o := outcome{
		Class:    "open",
		Mark:     "–",
		Word:     "No gates",
		Text:     "Nothing was required of this result.",
		Evidence: d.Evidence,
	}
	switch {
	case d.Gates == 0:
	case d.Passed == nil:
		o.Word, o.Text = "Open", "Not all gates were evaluated."
	case *d.Passed:
		o.Class, o.Mark, o.Word, o.Text = "passed", "✓", "Passed"+d.Qualifier(), heldMemory(d.Gates)
	default:
		o.Class, o.Mark, o.Word, o.Text = "failed", "✗", "Failed"+d.Qualifier(), notHeld(d.Failed, d.Gates)
	}
	if d.First > 0 {
		o.Text += fmt.Sprintf(
			" There is no baseline yet (first champion): %s not evaluated.",
			plural(int64(d.First), "gate"),
		)
	}
	if d.Qualifier() != "" && o.Class == "passed" {
		o.Class = "passed qualified" // neither green nor red
	}
	switch {
	case d.RandomInputs:
		o.Caveat = "The gates on outputs were evaluated on random inputs, which are no evidence of accuracy."
	case d.Reused:
		o.Caveat = "The gates on outputs were evaluated on samples that the result was also trained, calibrated or chosen " +
			"on. It is better on them than on others: verify with other samples (--test)."
	}
	return o
}

func heldMemory(gates int) string {
	if gates == 1 {
		return "The gate holds."
	}
	return fmt.Sprintf("All %d gates hold.", gates)
}

func notHeld(failed, gates int) string {
	switch {
	case gates == 1:
		return "The gate does not hold."
	case failed == 1:
		return fmt.Sprintf("1 of %d gates does not hold.", gates)
	}
	return fmt.Sprintf("%d of %d gates do not hold.", failed, gates)
}

// A gateView is a gate as a row of a table.
type gateView struct{ Name, Value, Relation, Bound, Class, Mark, Word string }

func gateViews(gs []Gate) []gateView {
	var views []gateView
	for _, g := range gs {
		v, relation, bound := g.Shown()
		views = append(
			views,
			gateView{
				g.Name,
				visible(v),
				relation,
				bound,
				g.class(),
				g.mark(),
				map[string]string{"passed": "holds", "failed": "does not hold", "open": "not evaluated"}[g.class()],
			},
		)
	}
	return views
}

// A fact is a line at the top of a page.
type fact struct{ Name, Text, Digest string }

// facts are what was done to the model, on which data, and when.
func facts(r *Report) []fact {
	fs := []fact{{Name: "Method", Text: methodText(r)}}
	if r.Target != nil {
		fs = append(fs, fact{Name: "Target", Text: r.Target.Name})
	}
	for _, d := range r.Data {
		fs = append(
			fs,
			fact{
				usesOfData[d.Use],
				visible(nameOfSamples(d.Name, d.Random, d.Seed)) + ", " + plural(int64(d.Samples), "sample"),
				d.SHA256,
			},
		)
	}
	if b := r.Baseline; b != nil {
		fs = append(fs, fact{"Baseline", visible(b.text()), b.Digest})
	}
	for _, t := range r.Teachers {
		fs = append(fs, fact{"Teacher", visible(main(t.Side)), t.sum()})
	}
	switch v := r.Verification; {
	case v == nil:
		fs = append(fs, fact{Name: "Verified on", Text: "the models were not run"})
	case v.Data != nil:
		fs = append(fs, fact{"Verified on", visible(v.Data.Text()), v.Data.SHA256})
	default:
		fs = append(fs, fact{Name: "Verified on", Text: visible(v.Evidence())})
	}
	if len(r.Result.Files) > 0 && !r.Result.Planned {
		fs = append(fs, fact{"Result", visible(r.Result.Files[0].Name), r.Result.Files[0].SHA256})
	}
	if r.Environment != nil {
		fs = append(fs, fact{Name: "Date", Text: r.Environment.date()})
	}
	return append(fs, fact{Name: "Tool", Text: visible(r.Tool.Name + " " + r.Tool.Version)})
}

// methodText names the methods of the steps with the number of weights that each changed.
func methodText(r *Report) string {
	var names []string
	for _, t := range r.Training {
		names = append(names, t.Method)
	}
	for _, x := range r.Ledger {
		if x.Method != "" && !slices.Contains(names, x.Method) {
			names = append(names, x.Method)
		}
	}
	changed := map[string]int64{}
	for _, w := range r.Weights {
		for i, m := range w.Methods {
			if !slices.Contains(w.Methods[:i], m) {
				changed[m]++
			}
		}
	}
	for i, name := range names {
		names[i] = visible(name) + " (" + plural(changed[name], "weight") + ")"
	}
	text := strings.Join(names, ", ")
	switch {
	case text == "":
		text = "not known: two models were compared"
	case r.Search != nil:
		text = "chosen by measurement (--auto): " + text
	}
	return text
}

// date is when the run started.
func (e *Environment) date() string {
	at, err := time.Parse(time.RFC3339, e.StartedAt)
	if err != nil {
		return visible(e.StartedAt)
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// A cost is a figure of both models at run time.
type cost struct {
	Name, Before, After, Change string
	Gate                        *gateView
}

// runFigures are memory and latency of both models.
func runFigures(r *Report) []cost {
	t := r.Totals
	cs := []cost{
		{
			Name:   "Memory in " + visible(t.Runtime),
			Before: size(t.RuntimeBytes.Before),
			After:  size(t.RuntimeBytes.After),
			Change: smaller(t.RuntimeBytes),
		},
		{
			Name:   "Its peak while loading",
			Before: size(t.RuntimePeak.Before),
			After:  size(t.RuntimePeak.After),
			Change: smaller(t.RuntimePeak),
		},
	}
	if e := t.Engine; e != nil {
		cs = append(
			cs,
			cost{
				Name:   "Memory of weights in " + engineName,
				Before: size(e.Before),
				After:  size(e.After),
				Change: smaller(*e),
			},
		)
	}
	if a := t.Activations; a != nil {
		cs = append(
			cs,
			cost{Name: "Peak memory of activations", Before: size(a.Before), After: size(a.After), Change: smaller(*a)},
		)
	}
	c := cost{Name: "Latency", Change: "not measured: --max-latency-ratio measures it"}
	if v := r.Verification; v != nil && v.Latency != nil {
		l := v.Latency
		c = cost{
			fmt.Sprintf("Latency, minimum of %s", plural(int64(l.Runs), "run")),
			seconds(l.Before),
			seconds(l.After),
			faster(l),
			nil,
		}
	}
	for _, g := range gateViews(r.Gates) {
		if g.Name == "max-latency-ratio" {
			c.Gate = &g
		}
	}
	return append(cs, c)
}
