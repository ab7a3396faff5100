package report

import (
	"io"
	"slices"
	"strings"
)

// A Format is a form of reports.
type Format struct {
	Name   string // as users choose it
	Suffix string // of the file, after the name of the model without .onnx
	Doc    string
	Write  func(*Report, io.Writer) error
}

// Formats are the forms of reports.
func Formats() []Format {
	return []Format{
		{"json", ".report.json", "every figure, for programs", (*Report).JSON},
		{"md", ".report.md", "tables, for pull requests", (*Report).Markdown},
		{"html", ".report.html", "a page with charts", (*Report).HTML},
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
func (f Format) Path(model string) string { return strings.TrimSuffix(model, ".onnx") + f.Suffix }
