package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

// A Headline is the headline figures of a report, without what it has of single weights and layers.
type Headline struct {
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
}

// headline returns the figures of r, and refers to nothing else of it.
func headline(r *Report) Headline {
	h := Headline{
		Digest: r.Digest, Source: firstFile(r.before()), Result: firstFile(r.Result),
		Methods: methodText(r), Verdict: r.Verdict, FileBytes: r.Totals.FileBytes, Ratio: r.Totals.Ratio,
		RuntimeBytes: r.Totals.RuntimeBytes, Coverage: r.Coverage.Fraction,
	}
	if v := r.Verification; v != nil {
		h.Data, h.Accuracy, h.Metric, h.Latency = v.Data, v.Accuracy, v.Metric, v.Latency
		if o := v.Worst(); o != nil {
			// A copy: a pointer would keep the report in memory, and an index has the headlines of thousands.
			worst := *o
			h.Output = &worst
		}
	}
	return h
}

func firstFile(s Side) File {
	if len(s.Files) == 0 {
		return File{}
	}
	return s.Files[0]
}

// quality is a quantity of which more is better; false where it was not measured.
func (h *Headline) quality(quantity string) (float64, bool) {
	switch {
	case quantity == "accuracy" && h.Accuracy != nil:
		return 100 * h.Accuracy.After, true
	case quantity == "metric" && h.Metric != nil && h.Metric.After != nil && h.Metric.HigherIsBetter:
		return *h.Metric.After, true
	case quantity == "metric" && h.Metric != nil && h.Metric.After != nil:
		return -*h.Metric.After, true
	case quantity == "output SQNR" && h.Output != nil && h.Output.Errors != nil && h.Output.Errors.SQNR != nil:
		return *h.Output.Errors.SQNR, true
	}
	return 0, false
}

// A column is a column of a table of reports, each a row of type R. Class is "n" for numbers.
type column[R any] struct {
	Name, Class string
	Cell        func(R) cell
}

// A cell is text, a note below it and a class on pages; Exact is what it is sorted by, Link where the text leads to.
type cell struct{ Text, Small, Exact, Class, Link string }

func (c cell) markdown() inline {
	if c.Small == "" {
		return prose(c.Text)
	}
	return prose(c.Text) + "<br>" + prose(c.Small)
}

// figureColumns are the columns of headline figures, which of returns for a row; nil where it has none.
func figureColumns[R any](of func(R) *Headline) []column[R] {
	var cs []column[R]
	for _, c := range []column[*Headline]{
		{"File size", "n", func(h *Headline) cell { return sizeCell(h.FileBytes.After) }},
		{"Ratio", "n", func(h *Headline) cell { return cell{Text: times(h.Ratio)} }},
		{"Runtime memory", "n", func(h *Headline) cell { return sizeCell(h.RuntimeBytes.After) }},
		{"Accuracy", "n", (*Headline).accuracy},
		{"Metric", "n", (*Headline).metric},
		{"Output SQNR", "n", func(h *Headline) cell { return cell{Text: h.sqnr()} }},
		{"Agreement", "n", func(h *Headline) cell { return cell{Text: h.agreement()} }},
		{"Latency", "n", (*Headline).latency},
	} {
		cs = append(cs, column[R]{c.Name, c.Class, func(r R) cell {
			if h := of(r); h != nil {
				return c.Cell(h)
			}
			return cell{}
		}})
	}
	return cs
}

// withContent are the columns in which a row has text.
func withContent[R any](columns []column[R], rows []R) []column[R] {
	return slices.DeleteFunc(columns, func(c column[R]) bool {
		return !slices.ContainsFunc(rows, func(r R) bool { return c.Cell(r).Text != "" })
	})
}

// A table is a table of a page, which is sorted and filtered.
type table struct {
	ID, Label string
	// Of thousands of rows: those outside of the window are not laid out, and widths of columns do not follow from texts.
	Long    bool
	Columns []column[any] // their names and classes
	Rows    [][]cell
}

// newTable has the columns in which a row has text.
func newTable[R any](id, label string, columns []column[R], rows []R) table {
	t := table{ID: id, Label: label, Rows: make([][]cell, len(rows))}
	for _, c := range withContent(columns, rows) {
		t.Columns = append(t.Columns, column[any]{Name: c.Name, Class: c.Class})
		for i, r := range rows {
			t.Rows[i] = append(t.Rows[i], c.Cell(r).of(c.Class))
		}
	}
	return t
}

// of is a cell of a column of a class.
func (c cell) of(class string) cell {
	c.Class = strings.TrimSpace(class + " " + c.Class)
	return c
}

// cell is the verdict in a table.
func (d Verdict) cell() cell {
	o := d.outcome()
	return cell{Text: o.Mark + " " + o.Word, Small: o.Text, Class: o.Class}
}

func sizeCell(n int64) cell { return cell{Text: size(n), Exact: fmt.Sprint(n, " bytes")} }

func (h *Headline) accuracy() cell {
	if h.Accuracy == nil {
		return cell{}
	}
	c := cell{Text: verification.Percent(h.Accuracy.After)}
	if h.Accuracy.Before != nil {
		c.Small = points2(h.Accuracy.After - *h.Accuracy.Before)
	}
	return c
}

func (h *Headline) metric() cell {
	if h.Metric == nil || h.Metric.After == nil {
		return cell{}
	}
	return cell{Text: visible(h.Metric.Name) + " " + fmt.Sprintf("%.4g", *h.Metric.After), Small: h.Metric.Text(),
		Exact: fmt.Sprint(*h.Metric.After)}
}

// sqnr is the SQNR of the worst output.
func (h *Headline) sqnr() string {
	if h.Output == nil || h.Output.Errors == nil {
		return ""
	}
	return h.Output.Errors.Text()
}

// agreement is the top-1 agreement of the worst output, or the fraction of its equal elements.
func (h *Headline) agreement() string {
	if h.Output == nil {
		return ""
	}
	return agreement(h.Output.Agreement)
}

func (h *Headline) latency() cell {
	if h.Latency == nil {
		return cell{}
	}
	return cell{Text: seconds(h.Latency.After), Small: faster(h.Latency), Exact: fmt.Sprint(h.Latency.After, " seconds")}
}
