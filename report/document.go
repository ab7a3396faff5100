package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/mcompress/mcompress/pass"
)

var (
	//go:embed head.html
	headText string
	//go:embed page.css
	pageStyle string
	//go:embed colors.css
	colors string
	//go:embed page.js
	pageScript string
)

// A document is an HTML page that loads nothing: style and script are in it, and its policy allows these by their
// hashes and nothing else.
type document struct {
	Title  string
	Style  template.CSS
	Script template.JS
	Policy string
}

func newDocument(title string) document {
	style := colors + pageStyle
	return document{
		Title: title, Style: template.CSS(style), Script: template.JS(pageScript),
		Policy: "default-src 'none'; style-src " + hashSource(style) + "; script-src " + hashSource(pageScript) +
			"; img-src data:; base-uri 'none'; form-action 'none'",
	}
}

// hashSource is the source expression of an inline element: Content Security Policy Level 3, section 2.3.1.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// execute writes the page of a template with its data, which embeds a document.
func execute(w io.Writer, text string, data any) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"visible": visible, "size": size, "shape": shape, "comma": count, "sqnr": sqnr, "cosine": cosine,
		"maxError": maxError, "sparsity": sparsity,
		"times": times, "rows": rows, "omitted": omitted, "join": joined, "plural": plural, "short": short,
		"kept": Weight.kept, "named": pass.Named, "measure": MeasureName, "targetHead": targetHead,
		"targetChoice": targetChoice, "removedText": RemovedText, "configText": ConfigText,
	}).Parse(headText + text)
	if err != nil {
		return err
	}
	return t.Execute(visibleWriter{w}, data)
}

// A visibleWriter writes the text of a page with invisible characters escaped: html/template escapes markup alone.
// Templates and html/template write whole characters at a time.
type visibleWriter struct{ io.Writer }

// Write implements io.Writer.
func (w visibleWriter) Write(b []byte) (int, error) {
	for lines := b; ; {
		line, rest, more := bytes.Cut(lines, []byte("\n"))
		if _, err := io.WriteString(w.Writer, visible(string(line))); err != nil || !more {
			return len(b), err
		}
		if _, err := io.WriteString(w.Writer, "\n"); err != nil {
			return len(b), err
		}
		lines = rest
	}
}
