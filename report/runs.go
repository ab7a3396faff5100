package report

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

//go:embed runs.html
var runsText string

// Runs are the headline figures of several reports, side by side. Their JSON form is described by
// docs/runs-schema.json.
type Runs struct {
	SchemaVersion int `json:"schema_version"`
	// the quantity of the Pareto front besides the file size; empty where no one is common to all
	Quality string   `json:"quality,omitempty"`
	Notes   []string `json:"notes,omitempty"` // why figures cannot be compared
	Runs    []Run    `json:"runs"`
}

// A Run is the headline figures of a report.
type Run struct {
	Label  string `json:"label"`  // A, B, …
	Report string `json:"report"` // name of the file
	Headline
	Pareto bool `json:"pareto"` // no other run is both smaller and better in the quality
}

// Add adds the report of the named file.
func (rs *Runs) Add(name string, r *Report) {
	rs.Runs = append(rs.Runs, Run{Label: letters(len(rs.Runs)), Report: filepath.Base(name), Headline: headline(r)})
	rs.compare()
}

// letters number runs as columns of a sheet: A to Z, AA, AB.
func letters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letters(i/26-1) + letters(i%26)
}

// compare finds the common quality, the Pareto front and the notes.
func (rs *Runs) compare() {
	rs.SchemaVersion, rs.Quality, rs.Notes = 1, "", nil
	for _, q := range []string{"metric", "accuracy", "output SQNR"} {
		all := true
		for _, r := range rs.Runs {
			_, known := r.quality(q)
			all = all && known && (q != "metric" || r.Metric.Name == rs.Runs[0].Metric.Name)
		}
		if all {
			rs.Quality = q
			break
		}
	}
	marks := rs.marks()
	var all []point
	for _, m := range marks {
		all = append(all, m.at)
	}
	front := pareto(all)
	for i := range rs.Runs {
		rs.Runs[i].Pareto = false
		for _, q := range front {
			rs.Runs[i].Pareto = rs.Runs[i].Pareto || q == marks[i].at
		}
	}
	if rs.differ(func(r Run) string { return cmp.Or(r.Source.SHA256, r.Source.Name) }) {
		rs.Notes = append(rs.Notes, "The reports are about different sources.")
	}
	if rs.differ(func(r Run) string {
		if r.Data == nil {
			return ""
		}
		return cmp.Or(r.Data.SHA256, r.Data.Text())
	}) {
		rs.Notes = append(
			rs.Notes,
			"The models were run on different samples: their errors and accuracies cannot be compared.",
		)
	}
	for _, r := range rs.Runs {
		if r.Data.Caveat() != "" {
			rs.Notes = append(rs.Notes, "Some results rest on random inputs, which are no evidence of accuracy.")
			break
		}
	}
}

func (rs *Runs) differ(of func(Run) string) bool {
	for _, r := range rs.Runs {
		if of(r) != of(rs.Runs[0]) {
			return true
		}
	}
	return false
}

// marks are the runs by file size and quality; nil without a common quality.
func (rs *Runs) marks() []mark {
	if rs.Quality == "" {
		return nil
	}
	var ms []mark
	for _, r := range rs.Runs {
		y, _ := r.quality(rs.Quality)
		ms = append(
			ms,
			mark{
				at:    point{float64(r.FileBytes.After), y},
				label: r.Label,
				full:  fmt.Sprintf("%s: %s, %s", r.Label, visible(r.Report), size(r.FileBytes.After)),
			},
		)
	}
	return ms
}

// JSON writes rs with two spaces of indentation.
func (rs *Runs) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(rs)
}

// Markdown writes rs as a table in GitHub's dialect.
func (rs *Runs) Markdown(w io.Writer) error {
	m := &markdown{}
	m.line("## %s", prose("Comparison of "+plural(int64(len(rs.Runs)), "run")))
	for _, n := range rs.Notes {
		m.line("> **Note:** %s", prose(n))
	}
	var head []inline
	cells := make([][]inline, len(rs.Runs))
	for _, c := range withContent(runColumns(), rs.Runs) {
		name := prose(c.Name)
		if c.Class == "n" {
			name += ":"
		}
		head = append(head, name)
		for i, r := range rs.Runs {
			cells[i] = append(cells[i], c.Cell(r).markdown())
		}
	}
	m.folded(head, cells, len(cells))
	if rs.Quality != "" {
		m.line("Pareto front: no other run is both smaller and better in %s.", prose(rs.Quality))
	}
	return m.writeTo(w)
}

// HTML writes rs as a self-contained page.
func (rs *Runs) HTML(w io.Writer) error {
	f := figure{
		Title: "File size and " + rs.Quality,
		Note: "Each point is a run, by its label in the table. The line and the full points are the Pareto front: no " +
			"other run is both smaller and better.",
	}
	axis, ticksOf := rs.Quality, decibelsOf
	switch rs.Quality {
	case "accuracy":
		axis, ticksOf = "accuracy in percent", numberTicks
	case "metric":
		axis, ticksOf = visible(rs.Runs[0].Metric.Name), numberTicks
		if !rs.Runs[0].Metric.HigherIsBetter {
			axis = "−" + axis
		}
	}
	var err error
	if f.SVG, err = paretoPlot(f, axis, ticksOf, rs.marks()); err != nil {
		return err
	}
	return execute(w, runsText, struct {
		document
		*Runs
		Table table
		Front figure
	}{newDocument("Comparison of " + plural(int64(len(rs.Runs)), "run")), rs,
		newTable("runs", "Runs", runColumns(), rs.Runs[:rows(len(rs.Runs))]), f})
}

// runColumns are the columns of a table of runs.
func runColumns() []column[Run] {
	all := []column[Run]{
		{"Run", "", func(r Run) cell { return cell{Text: r.Label} }},
		{"Report", "name", func(r Run) cell { return cell{Text: visible(r.name()), Small: r.Methods} }},
		{"Verdict", "", func(r Run) cell { return r.Verdict.cell() }},
	}
	all = append(all, figureColumns(func(r Run) *Headline { return &r.Headline })...)
	return append(
		all,
		column[Run]{"Pareto front", "", func(r Run) cell { return cell{Text: map[bool]string{true: "yes"}[r.Pareto]} }},
	)
}

// name is the name of the report without its suffix.
func (r Run) name() string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Report, ".json"), ".report")
}
