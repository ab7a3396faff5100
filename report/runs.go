package report

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

//go:embed runs.html
var runsText string

// Runs are the headline figures of several reports, side by side. Their JSON form is described by docs/runs-schema.json.
type Runs struct {
	SchemaVersion int      `json:"schema_version"`
	Quality       string   `json:"quality,omitempty"` // the quantity of the Pareto front besides the file size; empty where no one is common to all
	Notes         []string `json:"notes,omitempty"`   // why figures cannot be compared
	Runs          []Run    `json:"runs"`
}

// A Run is the headline figures of a report.
type Run struct {
	Label        string                 `json:"label"`            // A, B, …
	Report       string                 `json:"report"`           // name of the file
	Digest       string                 `json:"digest,omitempty"` // of the report
	Source       File                   `json:"source"`           // the first file of the model
	Result       File                   `json:"result"`
	Methods      string                 `json:"methods"`
	Verdict      Verdict                `json:"verdict"`
	FileBytes    Change                 `json:"file_bytes"`
	Ratio        float64                `json:"ratio"`
	RuntimeBytes Change                 `json:"runtime_bytes"`
	Coverage     float64                `json:"coverage"` // fraction
	Data         *verification.Data     `json:"data,omitempty"`
	Accuracy     *verification.Accuracy `json:"accuracy,omitempty"`
	Metric       *verification.Metric   `json:"metric,omitempty"`
	Output       *verification.Output   `json:"worst_output,omitempty"` // the output with the lowest SQNR
	Latency      *verification.Latency  `json:"latency,omitempty"`
	Pareto       bool                   `json:"pareto"` // no other run is both smaller and better in the quality
}

// Add adds the report of the named file.
func (rs *Runs) Add(name string, r *Report) {
	run := Run{
		Label: letters(len(rs.Runs)), Report: filepath.Base(name), Digest: r.Digest, Source: firstFile(r.before()), Result: firstFile(r.Result),
		Methods: methodText(r), Verdict: r.Verdict, FileBytes: r.Totals.FileBytes, Ratio: r.Totals.Ratio, RuntimeBytes: r.Totals.RuntimeBytes, Coverage: r.Coverage.Fraction,
	}
	if v := r.Verification; v != nil {
		run.Data, run.Accuracy, run.Metric, run.Output, run.Latency = v.Data, v.Accuracy, v.Metric, v.Worst(), v.Latency
	}
	rs.Runs = append(rs.Runs, run)
	rs.compare()
}

func firstFile(s Side) File {
	if len(s.Files) == 0 {
		return File{}
	}
	return s.Files[0]
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
		rs.Notes = append(rs.Notes, "The models were run on different samples: their errors and accuracies cannot be compared.")
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

// quality is a quantity of which more is better; false where it was not measured.
func (r Run) quality(quantity string) (float64, bool) {
	switch {
	case quantity == "accuracy" && r.Accuracy != nil:
		return 100 * r.Accuracy.After, true
	case quantity == "metric" && r.Metric != nil && r.Metric.After != nil && r.Metric.HigherIsBetter:
		return *r.Metric.After, true
	case quantity == "metric" && r.Metric != nil && r.Metric.After != nil:
		return -*r.Metric.After, true
	case quantity == "output SQNR" && r.Output != nil && r.Output.Errors != nil && r.Output.Errors.SQNR != nil:
		return *r.Output.Errors.SQNR, true
	}
	return 0, false
}

// marks are the runs by file size and quality; nil without a common quality.
func (rs *Runs) marks() []mark {
	if rs.Quality == "" {
		return nil
	}
	var ms []mark
	for _, r := range rs.Runs {
		y, _ := r.quality(rs.Quality)
		ms = append(ms, mark{at: point{float64(r.FileBytes.After), y}, label: r.Label, full: fmt.Sprintf("%s: %s, %s", r.Label, visible(r.Report), size(r.FileBytes.After))})
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
	m.line("## %s", "Comparison of "+plural(int64(len(rs.Runs)), "run"))
	for _, n := range rs.Notes {
		m.line("> **Note:** %s", prose(n))
	}
	var head []string
	cells := make([][]string, len(rs.Runs))
	for _, c := range rs.Columns() {
		name := c.Name
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
		m.line("Pareto front: no other run is both smaller and better in %s.", rs.Quality)
	}
	_, err := m.WriteTo(w)
	return err
}

// HTML writes rs as a self-contained page.
func (rs *Runs) HTML(w io.Writer) error {
	f := figure{Title: "File size and " + rs.Quality, Note: "Each point is a run, by its label in the table. The line and the full points are the Pareto front: no other run is both smaller and better."}
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
		Front figure
	}{newDocument("Comparison of " + plural(int64(len(rs.Runs)), "run")), rs, f})
}

// A runColumn is a column of the table of runs. Class is "n" for numbers.
type runColumn struct {
	Name, Class string
	Cell        func(Run) runCell
}

// A runCell is text, a note below it and a class on pages; Exact is what it is sorted by.
type runCell struct{ Text, Small, Exact, Class string }

func (c runCell) markdown() string {
	if c.Small == "" {
		return prose(c.Text)
	}
	return prose(c.Text) + "<br>" + prose(c.Small)
}

// Columns are those in which a run has a figure.
func (rs *Runs) Columns() []runColumn {
	text := func(of func(Run) string) func(Run) runCell {
		return func(r Run) runCell { return runCell{Text: of(r)} }
	}
	all := []runColumn{
		{"Run", "", text(func(r Run) string { return r.Label })},
		{"Report", "name", func(r Run) runCell { return runCell{Text: visible(r.name()), Small: r.Methods} }},
		{"Verdict", "", func(r Run) runCell {
			o := r.Verdict.outcome()
			return runCell{Text: o.Mark + " " + o.Word, Small: o.Text, Class: o.Class}
		}},
		{"File size", "n", func(r Run) runCell { return sizeCell(r.FileBytes.After) }},
		{"Ratio", "n", text(func(r Run) string { return times(r.Ratio) })},
		{"Runtime memory", "n", func(r Run) runCell { return sizeCell(r.RuntimeBytes.After) }},
		{"Accuracy", "n", Run.accuracy},
		{"Metric", "n", Run.metric},
		{"Output SQNR", "n", text(Run.sqnr)},
		{"Agreement", "n", text(Run.agreement)},
		{"Latency", "n", Run.latency},
		{"Pareto front", "", text(func(r Run) string { return map[bool]string{true: "yes"}[r.Pareto] })},
	}
	return slices.DeleteFunc(all, func(c runColumn) bool {
		return !slices.ContainsFunc(rs.Runs, func(r Run) bool { return c.Cell(r).Text != "" })
	})
}

func sizeCell(n int64) runCell { return runCell{Text: size(n), Exact: fmt.Sprint(n, " bytes")} }

// name is the name of the report without its suffix.
func (r Run) name() string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Report, ".json"), ".report")
}

func (r Run) accuracy() runCell {
	if r.Accuracy == nil {
		return runCell{}
	}
	c := runCell{Text: verification.Percent(r.Accuracy.After)}
	if r.Accuracy.Before != nil {
		c.Small = points2(r.Accuracy.After - *r.Accuracy.Before)
	}
	return c
}

func (r Run) metric() runCell {
	if r.Metric == nil || r.Metric.After == nil {
		return runCell{}
	}
	return runCell{Text: visible(r.Metric.Name) + " " + fmt.Sprintf("%.4g", *r.Metric.After), Small: r.Metric.Text(), Exact: fmt.Sprint(*r.Metric.After)}
}

// sqnr is the SQNR of the worst output.
func (r Run) sqnr() string {
	if r.Output == nil || r.Output.Errors == nil {
		return ""
	}
	return r.Output.Errors.Text()
}

// agreement is the top-1 agreement of the worst output, or the fraction of its equal elements.
func (r Run) agreement() string {
	if r.Output == nil {
		return ""
	}
	return agreement(r.Output.Agreement)
}

func (r Run) latency() runCell {
	if r.Latency == nil {
		return runCell{}
	}
	return runCell{Text: seconds(r.Latency.After), Small: faster(r.Latency), Exact: fmt.Sprint(r.Latency.After, " seconds")}
}
