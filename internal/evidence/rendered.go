package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/report"
)

// Rendered compares the other forms of a report, such as its Markdown, with those that follow from text, its JSON form:
// people read the forms, and digests are of the JSON form only. Forms of another version, and those with options of
// their own, are not compared.
func (res *Result) Rendered(ctx context.Context, documents Files, text []byte) error {
	r, err := report.Read(bytes.NewReader(text))
	if err != nil || !res.Matches() {
		return nil // forms of a report that is not right itself
	}
	stem := strings.TrimSuffix(res.Report, report.JSONSuffix)
	for _, f := range report.Formats() {
		if f.Suffix == report.JSONSuffix {
			continue
		}
		name := stem + f.Suffix
		form, err := documents.Read(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil && !errors.Is(err, ErrAbsent):
			return err
		}
		why := ""
		switch environment := (&report.Environment{}); {
		case err != nil:
			why = err.Error()
		case !f.Own:
			why = "it has options that the report has not"
		case r.Tool.Version != job.Version():
			why = fmt.Sprintf("it was written by version %s, this one is %s", r.Tool.Version, job.Version())
		// The JSON form has no times, so that equal runs write equal reports: a form that shows them is made from both
		// files.
		case f.Local:
			times, err := documents.Read(ctx, stem+".environment.json")
			if err == nil {
				err = bounded.JSON(times, environment)
			}
			if r.Environment = environment; err != nil {
				why = "the times of the run are not here: " + err.Error()
			}
			for _, line := range environment.Inconsistencies() {
				res.mismatch(stem+".environment.json", "%s", line)
			}
		}
		if why != "" {
			res.Unchecked = append(res.Unchecked, name+": "+why)
			continue
		}
		var want bytes.Buffer
		if err := f.Write(r, &want, report.Card{}); err != nil {
			return err
		}
		if line := difference(form, want.Bytes()); line > 0 {
			res.mismatch(name, "line %d is not that of the report: it was edited", line)
		}
		res.Checked = append(res.Checked, name)
	}
	return nil
}

// difference is the number of the first line that differs, 0 if none does. A checkout may have changed the ends of
// lines.
func difference(got, want []byte) int {
	if bytes.Equal(got, want) {
		return 0
	}
	line := 1
	next := func(b *[]byte) []byte {
		text, rest, _ := bytes.Cut(*b, []byte("\n"))
		*b = rest
		return bytes.TrimSuffix(text, []byte("\r"))
	}
	for ; len(got) > 0 || len(want) > 0; line++ {
		if !bytes.Equal(next(&got), next(&want)) {
			return line
		}
	}
	return 0
}
