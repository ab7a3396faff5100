package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/report/verification"
)

// VariantsJSON writes the array of the reports of variants.
func (b Batch) VariantsJSON(w io.Writer, _ Style, _ string) error {
	reports := []*report.Report{}
	for _, o := range b {
		if o.Err == nil && o.Variant != "fp32" {
			reports = append(reports, o.Result.Report)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(reports)
}

// VariantsText writes a table of sizes and errors for each model: a line for each of its variants, the source first. The title names where they are.
func (b Batch) VariantsText(w io.Writer, s Style, to string) error {
	for first, last := 0, 0; first < len(b); first = last {
		for last < len(b) && b[last].Model == b[first].Model {
			last++
		}
		if err := b[first:last].variants(w, s, to); err != nil {
			return err
		}
	}
	return b.caveat(w, s)
}

// variants is the table of one model.
func (b Batch) variants(w io.Writer, s Style, to string) error {
	if _, err := fmt.Fprintln(w, s.bold(b[0].Model)+" → "+s.bold(to)); err != nil {
		return err
	}
	rows := [][]string{{"dtype", "file", "size", "ratio", "coverage", "output SQNR", "cosine", "max abs error", "top-1 agreement", "accuracy", "gates"}}
	for i := range rows[0] {
		rows[0][i] = s.dim(rows[0][i])
	}
	for _, o := range b {
		rows = append(rows, o.variant(s))
	}
	if i := slices.IndexFunc(b, func(o Outcome) bool { return o.accuracy() != nil && o.accuracy().Before != nil }); i >= 0 {
		rows[1][9] = percent(*b[i].accuracy().Before)
	}
	t := &textTable{indent: "  ", align: "llrrrrrrrrl"}
	for _, row := range withoutEmptyColumns(rows) {
		t.add(row...)
	}
	return t.write(w)
}

// withoutEmptyColumns are rows without the columns that only the head has.
func withoutEmptyColumns(rows [][]string) [][]string {
	kept := make([][]string, len(rows))
	for column := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "" }) {
			continue
		}
		for i, row := range rows {
			kept[i] = append(kept[i], row[column])
		}
	}
	return kept
}

// variant is the line of a variant.
func (o Outcome) variant(s Style) []string {
	line := make([]string, 11)
	line[0] = o.Variant
	if o.Err != nil {
		line[1] = s.bad("not written")
		return line
	}
	r := o.Result.Report
	line[1], line[2] = r.Result.Files[0].Name, size(r.Totals.FileBytes.After)
	if o.Variant == "fp32" {
		return line
	}
	line[3], line[4], line[10] = ratio(r.Totals.FileBytes), percent(r.Coverage.Fraction), allGates(s, r)
	if o.Result.Rejected {
		line[1] = s.bad(line[1])
	}
	if v := r.Verification; v != nil && v.Skipped == "" {
		if worst := v.Worst(); worst != nil && worst.Sizes != nil {
			line[5] = "another size"
		} else if worst != nil && worst.Errors != nil {
			line[5], line[6], line[7] = worst.Errors.Text(), optional("%.5f", worst.Errors.Cosine), optional("%.2g", worst.Errors.Max)
		}
		if worst := v.Worst(); worst != nil && worst.Agreement != nil {
			line[8] = percent(*worst.Agreement)
		}
	}
	if a := o.accuracy(); a != nil {
		line[9] = percent(a.After)
	}
	return line
}

func (o Outcome) accuracy() *verification.Accuracy {
	if o.Err != nil || o.Result.Report.Verification == nil {
		return nil
	}
	return o.Result.Report.Verification.Accuracy
}
