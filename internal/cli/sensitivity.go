package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// Sensitivity writes the sensitivity of each weight to each method, the highest first.
func Sensitivity(w io.Writer, s Style, model string, found *pass.Search) error {
	t := &textTable{indent: "  ", align: "llrr"}
	t.add("weight", "method", "size", report.MeasureName(found.Measure))
	for _, l := range found.Layers {
		name := abridged(pass.Named(l.Tensors[0], l.Module))
		for _, v := range l.Variants {
			t.add(name, v.Method, size(v.Bytes), report.SensitivityText(found.Measure, v))
			name = ""
		}
	}
	if err := (part{fmt.Sprintf("%s: sensitivity, each weight alone, %d samples", model, found.Samples), t}).write(w, s); err != nil {
		return err
	}
	for _, failed := range found.Failures() {
		if _, err := fmt.Fprintln(w, "  "+s.bad("left out")+": "+Escape(failed)); err != nil {
			return err
		}
	}
	return nil
}

// SensitivityJSON writes the same as JSON.
func SensitivityJSON(w io.Writer, _ Style, model string, found *pass.Search) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Model string `json:"model"`
		*pass.Search
	}{model, found})
}
