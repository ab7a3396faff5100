package report

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

//go:embed index.html
var indexText string

// HTML writes x as a self-contained page, with all entries.
func (x *Index) HTML(w io.Writer) error {
	figures, err := x.distributions()
	if err != nil {
		return err
	}
	models := newTable("models", "Models", entryColumns(), x.Entries)
	models.Long = true
	out := bufio.NewWriter(w)
	return errors.Join(execute(out, indexText, struct {
		document
		Notes   []string
		Tiles   []tile
		Figures []figure
		Table   table
	}{newDocument("Index of " + plural(int64(x.Totals.Models), "model")), x.notes(), x.tiles(), figures, models}),
		out.Flush())
}

// notes are about reports that the totals leave out, and about evidence that is weak.
func (x *Index) notes() []string {
	var notes []string
	for _, n := range []struct {
		reports int
		text    string
	}{
		{x.Totals.Invalid, "Not counted, because it is not valid or was changed after it was written"},
		{x.Totals.Unlisted, "Not counted, because its model is not in the list"},
		{x.Totals.RandomInputs, "Verified on random inputs only, which are no evidence of accuracy"},
		{x.Totals.NotRun, "Not verified"},
	} {
		if n.reports > 0 {
			notes = append(notes, n.text+": "+plural(int64(n.reports), "report")+".")
		}
	}
	return notes
}

func (x *Index) tiles() []tile {
	t := x.Totals
	number := func(n int) string { return count(int64(n)) }
	sizes, without := Change{t.BytesBefore, t.BytesAfter}, t.Failed+t.Missing+t.Invalid
	ts := []tile{
		{
			Name:  "Models",
			Big:   number(t.Models),
			Small: number(t.Written) + " written, " + number(t.UpToDate) + " up-to-date",
		},
		{
			Name:  "Without result",
			Big:   number(without),
			Small: number(t.Failed) + " failed, " + number(t.Missing) + " missing, " + number(t.Invalid) + " invalid",
			Class: alarm(without),
		},
		{Name: "Rejected", Big: number(t.Rejected), Small: "by a gate", Class: alarm(t.Rejected)},
		{Name: "File size", Big: smaller(sizes), Small: size(sizes.Before) + " → " + size(sizes.After)},
		{
			Name:  "Runtime memory",
			Big:   smaller(t.RuntimeBytes),
			Small: size(t.RuntimeBytes.Before) + " → " + size(t.RuntimeBytes.After),
		},
	}
	if known := x.errors(); len(known) > 0 {
		ts = append(
			ts,
			tile{
				Name:  "Lowest output SQNR",
				Big:   known[0].Text(),
				Small: "median " + known[len(known)/2].Text() + " of " + plural(int64(len(known)), "result"),
			},
		)
	}
	return ts
}

// alarm is the class of a number of models that should be 0.
func alarm(n int) string {
	if n > 0 {
		return "failed"
	}
	return ""
}

// errors are those of the worst outputs of the results, the lowest SQNR first.
func (x *Index) errors() (known []*verification.Errors) {
	for _, e := range x.Entries {
		if e.counts() && e.Output != nil && e.Output.Errors != nil && !math.IsNaN(e.Output.Errors.DB()) {
			known = append(known, e.Output.Errors)
		}
	}
	slices.SortFunc(known, func(a, b *verification.Errors) int { return cmp.Compare(a.DB(), b.DB()) })
	return known
}

// distributions are histograms of the ratios and of the output SQNRs.
func (x *Index) distributions() ([]figure, error) {
	var ratios, sqnrs []float32
	for _, e := range x.Entries {
		if e.counts() {
			ratios = append(ratios, float32(e.Ratio))
		}
	}
	for _, e := range x.errors() {
		sqnrs = append(sqnrs, float32(e.DB()))
	}
	var fs []figure
	for _, d := range []struct {
		title, quantity string
		values          []float32
	}{{"Compression ratios", "compression ratio", ratios}, {"Output SQNRs", "output SQNR in dB", sqnrs}} {
		b := &binner{}
		b.add(d.values)
		if !b.any {
			continue
		}
		f := figure{Title: d.title, Note: "Models by " + d.quantity + "."}
		p := histogramPlot(f.caption(), d.quantity, "models", b.histogram())
		p.area(b.histogram(), after)
		var err error
		if f.SVG, err = p.svg(); err != nil {
			return nil, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

// entryColumns are the columns of the table of models.
func entryColumns() []column[Entry] {
	cs := []column[Entry]{
		{
			"Model",
			"name",
			func(e Entry) cell { return cell{Text: visible(e.name()), Small: e.methods(), Link: link(e.Page)} },
		},
		{"Status", "text", Entry.statusCell},
		{"Verdict", "text", Entry.verdict},
	}
	cs = append(cs, figureColumns(func(e Entry) *Headline { return e.Headline })...)
	return append(cs, column[Entry]{"Report digest", "hash", Entry.digest})
}

func (e Entry) methods() string {
	if e.Headline == nil {
		return ""
	}
	return e.Methods
}

func (e Entry) statusCell() cell {
	c := cell{Text: e.Status, Small: visible(e.Error)}
	switch {
	case e.rank() < 3:
		c.Text, c.Class = "✗ "+c.Text, "failed"
	case e.counts():
		c.Text = "✓ " + c.Text
	}
	return c
}

// verdict is that of the gates, with those that do not hold.
func (e Entry) verdict() cell {
	if e.Headline == nil {
		return cell{}
	}
	c := e.Verdict.cell()
	var failures []string
	for _, g := range e.Failures {
		v, relation, bound := g.Shown()
		failures = append(failures, visible(g.Name+": "+v+", bound "+relation+" "+bound))
	}
	c.Small = strings.Join(failures, "; ")
	return c
}

func (e Entry) digest() cell {
	switch {
	case e.Headline == nil:
		return cell{}
	case e.Digest == "":
		return cell{Text: "none"}
	}
	return cell{Text: short(visible(e.Digest)), Exact: visible(e.Digest)}
}

// link is the relative URL of a path; empty for none.
func link(path string) string {
	if path == "" {
		return ""
	}
	return (&url.URL{Path: path}).String()
}
