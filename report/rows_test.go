package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Pages name the number of rows that they omit; the JSON form has all.
func TestTablesAreBounded(t *testing.T) {
	r := verified(t, layered(3, node))
	changed, left, row := r.Weights[0], r.Weights[0], r.Ledger[0]
	left.Changed = false
	for range maxRows + 1233 {
		r.Weights = append(r.Weights, changed, left)
		r.Ledger = append(r.Ledger, row, row)
	}
	var md bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]struct {
		text    string
		omitted int
	}{"Markdown": {md.String(), 2}, "HTML": {html(t, r), 3}} { // changed weights, steps, and in HTML the weights of a reason
		if n := strings.Count(want.text, " more are in the JSON report"); n != want.omitted {
			t.Errorf("%s has %d notes on omitted rows, want %d", form, n, want.omitted)
		}
		if !strings.Contains(want.text, "1,234 more are in the JSON report") {
			t.Errorf("%s does not name the number of omitted weights", form)
		}
		if n := strings.Count(want.text, "\n"); n > 15*maxRows {
			t.Errorf("%s has %d lines", form, n)
		}
	}
	var got, want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("the JSON form differs from that of encoding/json: %v", err)
	}
}
