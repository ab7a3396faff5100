package report

import (
	"io"
	"slices"
	"strings"
)

// A Format is a form of reports.
type Format struct {
	Name   string // as users choose it
	Suffix string // of the file, after the name of the model without its own
	Doc    string // content
	// It has times of the run: equal runs write other bytes, so that it is neither signed nor pushed with a model.
	Local bool
	Own   bool // it follows from the report and its environment alone, not from options of a card
	Write func(*Report, io.Writer, Card) error
}

// JSONSuffix ends the names of reports in the JSON form: NAME.report.json is that of NAME.onnx.
const JSONSuffix = ".report.json"

// Formats are the forms of reports.
func Formats() []Format {
	return []Format{
		{
			"json",
			JSONSuffix,
			"every figure",
			false,
			true,
			func(r *Report, w io.Writer, _ Card) error { return r.JSON(w) },
		},
		{
			"md",
			".report.md",
			"tables for a pull request",
			false,
			true,
			func(r *Report, w io.Writer, _ Card) error { return r.Markdown(w) },
		},
		{
			"html",
			".report.html",
			"a page with charts",
			true,
			true,
			func(r *Report, w io.Writer, _ Card) error { return r.HTML(w) },
		},
		{"cyclonedx", ".cdx.json", "a CycloneDX ML-BOM", false, false, (*Report).CycloneDX},
		{
			"intoto",
			".intoto.json",
			"an in-toto statement with SLSA provenance",
			false,
			true,
			func(r *Report, w io.Writer, _ Card) error { return r.InToto(w) },
		},
		{
			"card",
			".card.md",
			"a model card of the Hugging Face Hub",
			false,
			false,
			func(r *Report, w io.Writer, c Card) error { return c.Write(w, r) },
		},
	}
}

// FormatNamed is the format of that name. It reports false if there is none.
func FormatNamed(name string) (Format, bool) {
	all := Formats()
	i := slices.IndexFunc(all, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return all[i], true
}

// Path is where the report of a model is, next to the model.
func (f Format) Path(model string) string { return Stem(model) + f.Suffix }

// Stem is the path of a model without its suffix, .onnx or .mcz.
func Stem(path string) string {
	if stem, ok := strings.CutSuffix(path, ".mcz"); ok {
		return stem
	}
	return strings.TrimSuffix(path, ".onnx")
}
